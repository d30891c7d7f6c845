"""gunicorn reads this file by itself; the settings live in the package, so that `rung serve` shares
them."""

from service.serving import *  # noqa: F401,F403
