"""Benchmarks of Rung beside its peers and its limit: `python -m bench`. Rows stand in `goals.py`."""
