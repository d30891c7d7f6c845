"""The address of this server as a page shows it, to be pasted into clients."""

import re
from typing import Final

from flask import request

from service.bootstrap import Services

#: A host as browsers send it: a name or an IP address, and perhaps a port.
_HOST: Final = re.compile(r"([a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?")


def here(services: Services) -> str:
    """The public address if set, else the one the browser used, without a slash.

    An invalid host is not repeated: the address is then a loopback one.
    """
    settings = services.settings
    if settings.public_url:
        return settings.public_url
    host = request.headers.get("Host", "").lower()
    if _HOST.fullmatch(host) is None:
        return f"http://127.0.0.1:{settings.port}"
    return f"{request.scheme}://{host}"
