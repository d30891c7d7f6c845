"""Sources of records other than our own store."""
