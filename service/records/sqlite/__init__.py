"""The record store on SQLite: its SQL, row ids, full-text index and writer."""
