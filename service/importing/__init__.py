"""Imports files: one module per format, manifest inference, and the importer."""
