"""Opens the store at a location, with the engine for that location."""

from importlib import import_module

from service.place import Place, engine_module
from service.records.engine.engine import Engine, Reader
from service.records.writing import Writing


def engine_of(location: Place) -> Engine:
    """The engine of the store at a location. Its module is imported only here."""
    engine: Engine = import_module(engine_module(location)).ENGINE(location)
    return engine


def open_writer(location: Place, *, lock_seconds: int | None = None) -> Writing:
    """Opens a store for writing; see `Engine.open_writer`."""
    return engine_of(location).open_writer(lock_seconds=lock_seconds)


def open_reader(location: Place, *, fixed: bool = False) -> Reader:
    """Opens a store for reading; see `Engine.open_reader`."""
    return engine_of(location).open_reader(fixed=fixed)
