"""Sources of records outside our own store."""
