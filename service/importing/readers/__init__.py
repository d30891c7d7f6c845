"""Readers of formats: one module a format, and one row in `formats.py`."""
