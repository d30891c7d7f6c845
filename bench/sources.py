"""Upstreams that answer every request with one body after a delay; callers that repeat requests."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from bench.load import HOST

STOP_SECONDS = 10.0
AGAIN_SECONDS = 1.0

GONE = (asyncio.IncompleteReadError, OSError)
BLANK = b"\r\n\r\n"

Body = Coroutine[Any, Any, None]


@dataclass(slots=True)
class Sources:
    """The URLs of the servers, and the number of requests that wait for an answer now."""

    urls: list[str] = field(default_factory=list)
    waiting: int = 0


@dataclass(slots=True)
class Callers:
    """The number of answers of any kind that the callers got."""

    answered: int = 0


@contextmanager
def answering(bodies: Sequence[bytes], seconds: float) -> Iterator[Sources]:
    """Runs a server for each JSON body, which answers any request with it after `seconds`."""
    found = Sources()

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for body in bodies:
                server = await asyncio.start_server(_server(found, body, seconds), HOST, 0)
                await stack.enter_async_context(server)
                found.urls.append(f"http://{HOST}:{server.sockets[0].getsockname()[1]}")
            yield

    with _in_thread(serving):
        yield found


@contextmanager
def repeating(port: int, requests: Sequence[bytes]) -> Iterator[Callers]:
    """Runs a caller for each request, which sends it again a second after each answer."""
    found = Callers()

    @asynccontextmanager
    async def calling() -> AsyncIterator[None]:
        callers = [asyncio.create_task(_repeat(found, port, request)) for request in requests]
        yield
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)

    with _in_thread(calling):
        yield found


def _server(
    found: Sources, body: bytes, seconds: float
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Body]:
    lines = ["HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    answer = "\r\n".join([*lines, "", ""]).encode() + body

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(*GONE, asyncio.CancelledError):  # cancelled when the run ends
            while await reader.readuntil(BLANK):
                found.waiting += 1
                try:
                    async with asyncio.timeout(seconds):
                        await reader.read(1)  # returns if the client hangs up
                    break
                except TimeoutError:
                    writer.write(answer)
                finally:
                    found.waiting -= 1
        writer.close()

    return serve


async def _repeat(found: Callers, port: int, request: bytes) -> None:
    while True:
        with suppress(*GONE):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(request)
                await reader.readuntil(BLANK)
                found.answered += 1
            finally:
                writer.close()
        await asyncio.sleep(AGAIN_SECONDS)


@contextmanager
def _in_thread(work: Callable[[], Any]) -> Iterator[None]:
    """Runs an asynchronous context in a thread of its own."""
    ready: Future[Callable[[], object]] = Future()

    async def run() -> None:
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        async with work():
            ready.set_result(lambda: loop.call_soon_threadsafe(done.set))
            await done.wait()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    stop = ready.result(STOP_SECONDS)
    try:
        yield
    finally:
        stop()
        thread.join(STOP_SECONDS)
