"""Sign-in: an OAuth 2.1 authorization server for our own store, and the owner pages."""
