"""Floor 0: the vocabulary. Standard library and orjson only, no I/O.

Here are the words: what is read, what can go wrong, what bounds it. Each is imported from its own
module, so that nobody waits for what is not used.
"""
