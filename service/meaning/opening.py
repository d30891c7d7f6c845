"""Opens the encoder that the settings name."""

from importlib.util import find_spec

from service.meaning.encoder import Encoder
from service.meaning.endpoint import Endpoint
from service.settings import Settings


def encoder_of(settings: Settings) -> Encoder | None:
    """The encoder that the settings name, not yet loaded.

    None if search by meaning is off, if its packages are not installed, or if nothing is named.
    """
    if settings.semantic == "off" or find_spec("numpy") is None:
        return None
    if settings.embeddings_url is None:
        return None
    return Endpoint(settings)
