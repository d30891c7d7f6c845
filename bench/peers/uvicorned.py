"""An ASGI application under uvicorn at its quickest: uvloop, httptools, no access log."""

import socket
from typing import Any

import uvicorn


def serve(app: Any, fd: int) -> None:
    """Serves from a socket that listens already, until the process is ended.

    The socket is given, not its descriptor: uvicorn would take that for a Unix socket, and answers
    would wait for acknowledgements, 40 ms each.
    """
    config = uvicorn.Config(
        app, loop="uvloop", http="httptools", access_log=False, log_level="warning"
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=fd)])
