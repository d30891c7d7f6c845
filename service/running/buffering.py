"""A threaded worker whose threads never wait for a client.

The main thread receives requests, and a thread gets a request once it is complete; `turns.py`
decides which. The main thread also sends the part of an answer that a client does not accept at
once. A slow client therefore occupies a connection and some memory, both bounded, and no thread.

TLS, HTTP/2, uWSGI and the PROXY protocol in gunicorn itself keep gunicorn's own handling.
This relies on gunicorn's internals: its version is pinned to one major.
"""

import errno
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any, Final

from gunicorn.http.errors import NoMoreData
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from evidence.limits import BUDGETS, Budgets
from evidence.work import Deadline
from service import settings
from service.running.connection import Connection, RequestBuffer, begin, end, parse, write
from service.running.turns import Turn, Turns, identify

#: How often the deadlines of all connections are checked.
CHECK_SECONDS: Final = 0.5
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_NOBODY: Final = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE)
_GONE: Final = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN)


class RequestTooSlow(Exception):
    """A request did not arrive in time."""


class Overloaded(Exception):
    """The unfinished requests of all clients together exceeded their limit."""


class BufferingWorker(ThreadWorker):  # type: ignore[misc]
    """See the module. All methods except `handle` run on the main thread."""

    bounds: Budgets = BUDGETS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cfg = self.cfg
        plain = not cfg.is_ssl and cfg.http_protocols == ["h1"]
        self._buffers = plain and cfg.protocol == "http" and cfg.proxy_protocol == "off"
        # Connections that no thread works on, in the order in which they began to wait.
        self._waiting: dict[Connection, None] = {}
        self._received = self._unsent = 0  # bytes, of all connections
        self._next_check = Deadline.after(0)
        effective = settings.load()
        self._turns = Turns(cfg.threads, effective.caller_threads, self._on_pause)
        self._busy = 0  # threads of the pool
        self._proxies = effective.trusted_proxy_hops
        upstream = effective.upstream_url is not None
        self._seconds = BUDGETS.upstream_seconds if upstream else BUDGETS.store_seconds

    # Waiting for a client.

    def _wait(
        self,
        connection: Connection,
        on_ready: Callable[[Connection], None],
        deadline: Deadline,
        on_late: Callable[[Connection], None],
        event: int = EVENT_READ,
    ) -> None:
        connection.on_ready, connection.on_late = on_ready, on_late
        connection.deadline = deadline
        self._waiting[connection] = None
        self.poller.register(connection.sock, event, partial(self._dispatch, connection))
        connection.polled = True

    def _stop_waiting(self, connection: Connection) -> None:
        self._waiting.pop(connection, None)
        if connection.polled:
            self.poller.unregister(connection.sock)
            connection.polled = False

    def _dispatch(self, connection: Connection, _sock: Any = None) -> None:
        # An earlier event of the same round may have ended the wait.
        if connection in self._waiting:
            self._run(connection.on_ready, connection)

    def _run(self, step: Callable[[Connection], None], connection: Connection) -> None:
        """Runs a step. An error ends the connection and not the worker."""
        try:
            step(connection)
        except OSError:
            self._drop(connection)
        except Exception:
            self.log.exception("Error on a connection")
            self._drop(connection)

    def murder_keepalived(self, force: bool = False) -> None:
        """Closes connections that have waited too long, or all with `force`."""
        super().murder_keepalived(force)
        for turn in self._turns.clear() if force else ():
            if turn.resumed is not None:
                turn.resumed.set()
            else:
                self._drop(turn.connection)
        self._give_turns()  # a deadline may have passed
        if not force and not self._next_check.expired():
            return
        self._next_check = Deadline.after(CHECK_SECONDS)
        for connection in list(self._waiting):
            if force:
                self._drop(connection)
            elif connection.deadline.expired() and connection in self._waiting:
                self._run(connection.on_late, connection)

    def _cap_keepalive(self, deadline: float) -> None:
        """Closes idle connections by that time; gunicorn calls it when the worker stops."""
        super()._cap_keepalive(deadline)
        for connection in self._waiting:
            if connection.on_late == self._drop:
                connection.deadline = Deadline(min(connection.deadline.at, deadline))

    # Receiving a request.

    def accept(self, listener: socket.socket) -> None:
        """Accepts a connection.

        If there are too many, the one that has waited longest is closed.
        """
        if not self._buffers:
            super().accept(listener)
            return
        try:
            sock, client = listener.accept()
        except OSError as error:
            if error.errno in _NO_FILES:
                self._make_room()
            elif error.errno not in _NOBODY:
                raise
            return
        self.nr_conns += 1
        if self.nr_conns >= self.worker_connections:
            self._make_room()
        connection = Connection(sock, client, listener.getsockname())
        self._expect(connection, self.bounds.head_seconds)
        self._dispatch(connection)

    def _expect(self, connection: Connection, seconds: float) -> None:
        """Waits for the first byte of a request."""
        connection.request = RequestBuffer(self.bounds, self.cfg.limit_request_line)
        self._wait(connection, self._receive, Deadline.after(seconds), self._drop)

    def _receive(self, connection: Connection) -> None:
        try:
            chunk = connection.sock.recv(BUDGETS.piece_bytes)
        except (BlockingIOError, InterruptedError):
            return
        if chunk:
            self._feed(connection, chunk)
            return
        connection.request.end()
        if connection.request.ready:
            self._submit(connection)
        else:
            self._drop(connection)

    def _feed(self, connection: Connection, chunk: bytes) -> None:
        """Adds bytes to a request, and passes it to a thread if it is ready."""
        request = connection.request
        if not connection.received:
            connection.deadline = Deadline.after(self.bounds.head_seconds)
            connection.on_late = partial(self._refuse, error=RequestTooSlow())
        connection.received += len(chunk)
        self._received += len(chunk)
        request.feed(chunk)
        if request.refusal is not None:
            self._refuse(connection, request.refusal)
            return
        if request.ready:
            self._submit(connection)
        elif request.body_start:
            connection.deadline = request.body_deadline()
            if request.expects:
                request.expects = False
                connection.sock.send(CONTINUE)
        if self._received > self.bounds.received_bytes:
            self._free_requests()

    def _submit(self, connection: Connection) -> None:
        self._stop_waiting(connection)
        deadline = Deadline.after(self._seconds)
        connection.arrival = deadline.at - self._seconds
        request = connection.request
        head = bytes(request.data[: request.body_start])
        identity = identify(head, connection.client, self._proxies)
        connection.turn = Turn(connection, *identity, deadline)
        self.enqueue_req(connection)

    # Waiting for a thread.

    def get_thread_pool(self) -> Any:
        """The threads. Others replace those whose requests pause, and one is for late requests."""
        self._spare = ThreadPoolExecutor(1 + BUDGETS.paused_batches)
        return super().get_thread_pool()

    def enqueue_req(self, conn: Any) -> None:
        """Lets a request wait for its turn at a thread."""
        if not isinstance(conn, Connection):
            super().enqueue_req(conn)
            return
        self._turns.wait(conn.turn)
        self._give_turns()

    def _give_turns(self) -> None:
        for turn in self._turns.begin():
            if turn.resumed is not None:
                turn.resumed.set()
                continue
            pooled = self._busy < self.cfg.threads and not turn.late
            self._busy += pooled
            done = partial(self.method_queue.defer, self._end_turn, turn, pooled)
            pool = self.tpool if pooled else self._spare
            pool.submit(self.handle, turn.connection).add_done_callback(done)

    def _end_turn(self, turn: Turn, pooled: bool, done: "Future[bool]") -> None:
        self._busy -= pooled
        self._turns.end(turn)
        self._give_turns()
        self.finish_request(turn.connection, done)

    def _on_pause(self, turn: Turn) -> None:
        """Lets a request that pauses wait again; on its thread."""
        self.method_queue.defer(self.enqueue_req, turn.connection)

    def _refuse(self, connection: Connection, error: Exception) -> None:
        self._stop_waiting(connection)
        self.handle_error(None, connection.sock, connection.client, error)
        self._finish(connection)

    # Limits for all connections together.

    def _make_room(self) -> None:
        """Closes the connection that has waited longest."""
        longest = next(iter(self._waiting), None)
        if longest is not None:
            self._drop(longest)

    def _free_requests(self) -> None:
        """Refuses requests that use more than their share of memory, the oldest first."""
        while self._received > self.bounds.received_bytes:
            unfinished = [connection for connection in self._waiting if connection.received]
            if not unfinished:
                return
            share = sum(connection.received for connection in unfinished) / len(unfinished)
            oldest = next(connection for connection in unfinished if connection.received >= share)
            self._refuse(oldest, Overloaded())

    def _free_answers(self, newest: Connection) -> None:
        """Cuts answers off, starting with the client that received nothing for longest."""
        unsent = (connection for connection in list(self._waiting) if connection.unsent)
        while self._unsent > self.bounds.unsent_bytes:
            longest = next(unsent, newest)
            if longest is newest:
                return
            self._cut(longest)

    def _count(self, connection: Connection, received: int, unsent: int) -> None:
        """Updates the bytes counted for a connection."""
        self._received += received - connection.received
        self._unsent += unsent - connection.unsent
        connection.received, connection.unsent = received, unsent

    # Answering, on a thread.

    def handle(self, conn: Any) -> bool:
        """Answers a request, or sends more of an answer; returns whether another may follow."""
        if not isinstance(conn, Connection):
            return bool(super().handle(conn))
        request = None
        try:
            if conn.answer is None:
                request = parse(self, conn)
                begin(self, conn, request)
            write(self, conn)
        except (StopIteration, NoMoreData) as error:
            self.log.debug("Closing connection. %s", error)
        except OSError as error:
            conn.response.clear()
            if error.errno not in _GONE:
                self.log.exception("Socket error processing request.")
        except Exception as error:
            self.handle_error(request, conn.sock, conn.client, error)
        return conn.keep

    # Sending what a client did not accept at once, and what follows.

    def finish_request(self, conn: Any, fs: "Future[bool]") -> None:
        """Continues on the main thread after a thread is done with a connection."""
        if not isinstance(conn, Connection):
            super().finish_request(conn, fs)
            return
        self._count(conn, 0, 0)
        if fs.cancelled() or fs.exception() is not None:
            self._drop(conn)
        else:
            self._run(self._send_later if conn.response.size else self._continue, conn)

    def _send_later(self, connection: Connection) -> None:
        if connection.pace is None:
            connection.pace = Deadline.after(self.bounds.answer_window_seconds)
            connection.pace_start = connection.response.received()
        self._wait(connection, self._send, connection.pace, self._check_pace, EVENT_WRITE)
        self._count(connection, 0, connection.response.memory_bytes)
        self._free_answers(connection)

    def _send(self, connection: Connection) -> None:
        """Sends more of an answer; a thread makes the next piece of it."""
        if connection.response.flush():
            self._stop_waiting(connection)
            self._count(connection, 0, 0)
            self._continue(connection)
            return
        self._count(connection, 0, connection.response.memory_bytes)
        del self._waiting[connection]  # to the end, as the latest that received something
        self._waiting[connection] = None

    def _check_pace(self, connection: Connection) -> None:
        """Cuts an answer off if the client receives it too slowly."""
        seconds, received = self.bounds.answer_window_seconds, connection.response.received()
        if received - connection.pace_start < seconds * self.bounds.answer_rate_bytes:
            self._cut(connection)
            return
        connection.deadline = connection.pace = Deadline.after(seconds)
        connection.pace_start = received

    def _continue(self, connection: Connection) -> None:
        """Continues after the response has been sent."""
        if connection.answer is not None:
            self.enqueue_req(connection)
        elif connection.keep:
            idle = self.bounds.idle_seconds if self.alive else float(STOP_KEEPALIVE_LINGER)
            self._expect(connection, idle)
            if pipelined := connection.parser.unreader.take_buffered():
                self._feed(connection, pipelined)
        else:
            self._finish(connection)

    # The end of a connection.

    def _finish(self, connection: Connection) -> None:
        """Closes our side and reads on for a moment.

        A client that is still sending would otherwise get a reset instead of the answer.
        """
        self._count(connection, 0, 0)
        connection.request.data.clear()
        deadline = Deadline.after(self.bounds.drained_seconds)
        try:
            connection.sock.shutdown(socket.SHUT_WR)
            self._wait(connection, self._discard, deadline, self._drop)
        except OSError:
            self._drop(connection)

    def _discard(self, connection: Connection) -> None:
        try:
            chunk = connection.sock.recv(BUDGETS.piece_bytes)
        except (BlockingIOError, InterruptedError):
            return
        connection.discarded += len(chunk)
        if not chunk or connection.discarded > self.bounds.drained_bytes:
            self._drop(connection)

    def _cut(self, connection: Connection) -> None:
        self.log.info("A response was aborted because the client did not read it.")
        self._drop(connection, discard=True)

    def _drop(self, connection: Connection, *, discard: bool = False) -> None:
        """Closes a connection that no thread works on; see `Connection.close`."""
        if connection.closed:
            return
        self._stop_waiting(connection)
        self._count(connection, 0, 0)
        connection.response.clear()
        connection.close(discard=discard)
        self.nr_conns -= 1
        if connection.answer is not None:
            with suppress(RuntimeError):  # no thread is left when the worker ends
                self.tpool.submit(end, self, connection)
