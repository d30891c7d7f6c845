"""Benchmarks of Rung against its peers and a limit: `python -m bench`. Rows are in `goals.py`."""
