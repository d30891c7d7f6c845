"""An ASGI application under uvicorn with its fastest options: uvloop, httptools, no access log."""

import socket
from typing import Any

import uvicorn


def serve(app: Any, fd: int) -> None:
    """Serves from a listening socket until the process ends.

    uvicorn gets the socket, not its descriptor, which it would treat as a Unix socket: answers
    would wait for acknowledgements, 40 ms each.
    """
    config = uvicorn.Config(
        app, loop="uvloop", http="httptools", access_log=False, log_level="warning"
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=fd)])
