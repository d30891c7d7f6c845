"""Floor 0: the vocabulary. No I/O, except that it reads data files of its own.

It defines the answers, the errors and the limits. Import each name from its own module, so that an
import loads only what it needs.
"""
