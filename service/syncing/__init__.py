"""Sources: what keeps a store fresh. The owner's file says what they are; the store never does."""
