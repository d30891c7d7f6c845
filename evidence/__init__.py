"""Floor 0: the vocabulary. No I/O, except that it reads data files of its own.

It names what is read, what can go wrong and what is bounded. Import each name from its own module:
an import then loads only what it needs.
"""
