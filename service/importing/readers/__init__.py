"""Readers of file formats; each format is an entry in `formats.py`."""
