"""Sign-in: an authorization server (OAuth 2.1) for our own store, and the pages of its owner."""
