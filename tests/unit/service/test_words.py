"""Words of a command line as they are printed."""

from service.cli import words


def test_a_word_is_read_back_by_every_shell() -> None:
    # zsh takes a word that begins with = for the name of a command.
    assert words.line(["rung", "search", "=ls", "a=b", "it's"]) == (
        """rung search '=ls' a=b 'it'"'"'s'"""
    )
