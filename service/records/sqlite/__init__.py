"""The record store on SQLite: every line of SQL, the row ids, the full-text index, the writer."""
