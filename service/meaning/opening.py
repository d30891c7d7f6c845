"""Opens the encoder that the settings name."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from evidence.errors import Unavailable
from service.meaning.encoder import Encoder
from service.settings import Settings, announce, data_folder

#: Packages of the extra `semantic`: those that search needs, and those that the local model needs.
SEARCH, MODEL = ("numpy",), ("onnxruntime", "sentencepiece")
#: Without these, onnxruntime reports its use and numpy starts threads when it is imported.
QUIET = {"ORT_DISABLE_TELEMETRY": "1", "OPENBLAS_NUM_THREADS": "1"}


def encoder_of(settings: Settings) -> Encoder | None:
    """The encoder that the settings name, not yet loaded.

    None if search by meaning is off, if its packages are not installed, or if there is neither an
    endpoint nor a model. A RUNG_MODEL without a model is reported when it is loaded.
    """
    packages = SEARCH if settings.embeddings_url else SEARCH + MODEL
    if settings.semantic == "off" or missing(packages):
        return None
    announce(**QUIET)
    if settings.embeddings_url:
        from service.meaning.endpoint import Endpoint

        return Endpoint(settings)
    from service.meaning import card
    from service.meaning.model import LocalModel

    folder = model_folder(settings)
    return LocalModel(folder) if settings.model or (folder / card.FILE).exists() else None


def required_encoder(settings: Settings) -> Encoder:
    """The same for a command that needs it; raises `Unavailable` without one."""
    encoder = encoder_of(settings)
    if encoder is None:
        raise Unavailable(
            "Search by meaning is off: RUNG_SEMANTIC=off is set, its packages are not installed, "
            "or there is no model. To install a model, run `rung model install`."
        )
    return encoder


def missing(packages: Iterable[str]) -> bool:
    """True if one of these packages is not installed."""
    return None in map(find_spec, packages)


def model_folder(settings: Settings) -> Path:
    """The folder of the local model."""
    return settings.model or data_folder() / "models"
