"""Floor 0: the vocabulary. Standard library and orjson only, no I/O."""
