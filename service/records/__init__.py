"""The record store: what a grant may see of it, searched, listed, counted and read."""
