"""Comparisons of filters."""

from typing import Final

#: Comparisons other than equality, with their signs in a shell.
OPERATORS: Final = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}
