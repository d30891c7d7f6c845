"""The process that parses files of strangers, and the import's side of it."""
