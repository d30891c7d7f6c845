"""The record store: searches, lists, counts and reads what a grant covers."""
