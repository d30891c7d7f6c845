"""Importing files: one module per format, manifest inference, the importer."""
