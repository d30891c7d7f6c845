"""Sources keep a store up to date. Only the owner's file can define them, never the store."""
