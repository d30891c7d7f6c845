"""The owner's webhook gets events about changed streams, without any text of a record."""
