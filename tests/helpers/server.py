"""A real gunicorn on a free loopback port, for what a test client cannot show."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from tests.helpers.waiting import WAIT_SECONDS

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 10

#: Tests send more requests than clients do.
UNLIMITED = {
    "RUNG_RATE_LIMIT_TOKEN": "off",
    "RUNG_RATE_LIMIT_ADDRESS": "off",
    "RUNG_WORK_SECONDS": "off",
}
#: There is no router in front, which would need time to notice.
QUICK = {"RUNG_DRAIN_SECONDS": "0", **UNLIMITED}

#: Prefixes of variables that would change what servers do, depending on who runs the tests.
UNWANTED = ("GUNICORN_CMD_ARGS", "WEB_CONCURRENCY", "FORWARDED_ALLOW_IPS", "RUNG_", "PDPP_")


class BootFailed(RuntimeError):
    """The server ended or hung before its first answer. The message contains its log."""


@contextmanager
def serving(
    app_import: str,
    env: Mapping[str, str] | None = None,
    *,
    workers: int = 1,
    threads: int = 4,
    config: str = os.devnull,
    cwd: Path | None = None,
    user: int | None = None,
    log: IO[bytes] | None = None,
    started: list[int] | None = None,
) -> Iterator[str]:
    """Serves `app_import` (`module:app` or `module:create_app()`) and yields its base URL.

    The application finds its port in `PORT`, which also replaces `{port}` in `env`. `config`
    names a gunicorn configuration file; none is read otherwise. Workers run in `cwd`, by
    default an empty folder, because a checkout may contain a store in `var`. They run as the
    user with the number `user`, who need not be able to read the code. The server logs to
    `log`. Its process group is added to `started`. On exit the server and its workers are gone.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as stack:
        log = log or stack.enter_context(TemporaryFile())
        if cwd is None:
            cwd = Path(stack.enter_context(TemporaryDirectory()))
            cwd.chmod(0o755)
        port = listener.getsockname()[1]
        command = [sys.executable, "-m", "gunicorn", app_import, "--config", config]
        command += [
            "--no-control-socket",
            "--bind",
            f"fd://{listener.fileno()}",
            "--workers",
            str(workers),
        ]
        command += ["--threads", str(threads)]
        if config == os.devnull:
            command += ["--worker-class", "gthread"]
        if user is not None:
            command += ["--user", str(user), "--group", str(user), "--preload"]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(UNWANTED)}
        given = {key: value.replace("{port}", str(port)) for key, value in (env or {}).items()}
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**kept, **QUICK, "PYTHONPATH": str(ROOT), **given, "PORT": str(port)},
            pass_fds=[listener.fileno()],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        if started is not None:
            started.append(process.pid)
        # From here only the server holds the socket: if it dies, connections fail at once.
        listener.close()
        try:
            _await_answer(port, process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            _stop(process)


def _await_answer(port: int, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    """Returns when a worker has answered. The request waits in the listener's queue for it."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            answered, why = connection.recv(1), "it closed the connection"
    except OSError as error:
        answered, why = b"", repr(error)
    if not answered:
        log.seek(0)
        ended = f"{why}, exit code {process.poll()}"
        raise BootFailed(
            f"gunicorn did not answer ({ended}):\n{log.read().decode('utf-8', 'replace')}"
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stops the server gently, or if that fails, kills it and all its workers."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
