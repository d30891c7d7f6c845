"""The comparison operators of filters."""

from typing import Final

#: Comparisons other than equality, with their signs in a shell and in SQL.
OPERATORS: Final = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}
