"""Benchmarks of Rung against its own limit: `python -m bench`."""
