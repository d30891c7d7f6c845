"""What measures each place of `goals.py`: a module a place, each with `measure(plan)`."""
