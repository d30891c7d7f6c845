"""Runs the scenarios of the conformance suite for authorization servers.

python -m tests.conformance.sign_in
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import requests

from tests.conformance.run import HERE, NODE, SUITE
from tests.helpers import worlds
from tests.helpers.packages import install_node_packages
from tests.helpers.server import serving
from tests.helpers.signin import MAIL, REGISTRATION, Browser, Client, answer

PORT = 4455


def main() -> int:
    """The exit code of the suite."""
    install_node_packages(HERE)
    redirect = f"http://127.0.0.1:{PORT}/callback"
    with TemporaryDirectory() as folder:
        house = worlds.build(worlds.two_mailboxes(), Path(folder))
        environ = {**house.environment, "RUNG_SIGN_IN": "on"}
        with serving("wsgi:app", environ, workers=2) as base:
            client = Client(base, {**REGISTRATION, "redirect_uris": [redirect]}).register()
            browser = Browser(base, house.path)
            command = [str(NODE), str(SUITE), "authorization", "--url", base]
            command += ["--client-id", client.id, "--port", str(PORT), "--resource", f"{base}/mcp"]
            with subprocess.Popen(
                command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ) as suite:
                assert suite.stdout is not None
                for line in suite.stdout:
                    print(line, end="")
                    found = re.search(rf"{base}(/authorize\?\S+)", line)
                    if found:
                        requests.get(redirect, answer(browser.allow(found[1], MAIL)))
                return suite.wait()


if __name__ == "__main__":
    sys.exit(main())
