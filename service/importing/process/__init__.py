"""The process that parses untrusted files, and the import's side of it."""
