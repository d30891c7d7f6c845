"""Reads what a grant covers: lists, fields, aggregates, changes, schemas and blobs."""
