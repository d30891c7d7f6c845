"""Benchmarks of Rung beside its peers and its limit: `python -m bench`; rows are in `goals.py`."""
