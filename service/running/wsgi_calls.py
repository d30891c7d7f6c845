"""Runs the WSGI application for one complete request in a worker thread."""

from datetime import datetime
from typing import Any

from gunicorn import http
from gunicorn.http import wsgi

from service.running.connection import Answer, Connection


def parse(worker: Any, connection: Connection) -> Any:
    """The parsed request; raises the errors of gunicorn's parser."""
    connection.keep = False
    if connection.parser is None:
        # Without a source: the parser gets the bytes from here, and cannot wait for more.
        connection.parser = http.get_parser(worker.cfg, (), connection.client)
    connection.parser.unreader.unread(bytes(connection.request.data))
    connection.request.data.clear()
    request = next(connection.parser)
    request._expected_100_continue = False  # answered while the body arrived
    return request


def begin(worker: Any, connection: Connection, request: Any) -> None:
    """Calls the application."""
    began = datetime.now()
    worker.cfg.pre_request(worker, request)
    response, environ = wsgi.create(
        request, connection.response, connection.client, connection.server, worker.cfg
    )
    environ["wsgi.multithread"] = True
    worker.nr += 1
    if worker.nr >= worker.max_requests and worker.alive:
        worker.log.info("Autorestarting worker after current request.")
        worker.alive = False
    reusable = connection.request.complete and worker.cfg.keepalive and worker.max_keepalived > 0
    if not reusable or not worker.alive:
        response.force_close()
    connection.pace = None
    iterable = worker.wsgi(environ, response.start_response)
    connection.answer = Answer(request, response, environ, iterable, iter(iterable), began)


def write(worker: Any, connection: Connection) -> None:
    """Sends the answer until the client accepts no more. Call it again to continue."""
    answer = connection.answer
    assert answer is not None, "an answer was begun"
    response = answer.response
    try:
        for piece in answer.pieces:
            response.write(piece)
            if not connection.response.flush():
                return
        response.close()
        connection.response.flush()
    except OSError:
        end(worker, connection)
        raise
    except Exception:
        end(worker, connection)
        if not response.headers_sent:
            raise
        worker.log.exception("Error handling request")
        return
    end(worker, connection)
    connection.keep = not response.should_close() and bool(connection.parser.finish_body())


def end(worker: Any, connection: Connection) -> None:
    """Closes the answer: the application is done with it."""
    answer, connection.answer = connection.answer, None
    if answer is None:
        return
    passed = datetime.now() - answer.began
    try:
        worker.log.access(answer.response, answer.request, answer.environ, passed)
        if hasattr(answer.iterable, "close"):
            answer.iterable.close()
        worker.cfg.post_request(worker, answer.request, answer.environ, answer.response)
    except Exception:
        worker.log.exception("Error at the end of a request")
