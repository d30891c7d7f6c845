"""Measures the groups of `goals.py`: one module per group, each with `measure(plan)`."""
