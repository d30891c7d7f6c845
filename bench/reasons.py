"""What was tried for goals that cannot be held, with figures, and what forbids them.

By the key of the row in `goals.py`; the page shows it where the row is missed.
"""

MISSED: dict[str, str] = {}
