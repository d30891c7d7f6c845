"""Readers of file formats: one module per format, and one row in `formats.py`."""
