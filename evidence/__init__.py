"""Floor 0: the vocabulary. Standard library and orjson only, no I/O.

It names what is read, what can go wrong and what is bounded. Import each name from its own module:
an import then loads only what it needs.
"""
