"""Imports files: readers of formats, manifest inference, and the importer."""
