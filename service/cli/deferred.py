"""Commands whose modules are imported on first use.

Listing and completing commands needs only their names and one line of help, no module.
"""

from importlib import import_module
from typing import Any

import click


class Deferred(click.Command):
    """A placeholder for the command `attribute` of a module here, imported when it is called."""

    def __init__(self, name: str, module: str, attribute: str, help: str) -> None:
        super().__init__(name, short_help=help)
        self._module, self._attribute = module, attribute

    def load(self) -> click.Command:
        """The command itself."""
        command = getattr(import_module(f"service.cli.{self._module}"), self._attribute)
        assert isinstance(command, click.Command)
        return command

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """A context of the real command, so that it is parsed, completed and run."""
        return self.load().make_context(*args, **options)


def loaded(command: click.Command) -> click.Command:
    """The real command, loaded if deferred."""
    return command.load() if isinstance(command, Deferred) else command
