"""Reading: lists, fields, aggregates, changes, schemas and blobs of a grant."""
