"""The owner's webhook receives events about changed streams. The events contain no record text."""
