"""Signs in with the Python SDK: consent, search, expiry and refresh, then revocation.

python -m tests.clients.sign_in
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.clients.run import OVER_HTTP, install
from tests.helpers import worlds
from tests.helpers.server import serving
from tests.helpers.signin import MAIL, REDIRECT, Browser, answer, later, new_code, run_command

SDK = next(client for client in OVER_HTTP if client.requirements == ("mcp==2.3.0",))
DRIVER = Path(__file__).with_name("drive_sign_in.py")


def main() -> int:
    """0 if the client reads what was ticked, refreshes, and is cut off."""
    install([SDK])
    with TemporaryDirectory() as folder:
        house = worlds.build(worlds.two_mailboxes(), Path(folder))
        environ = {**house.environment, "RUNG_SIGN_IN": "on"}
        with serving("wsgi:app", environ, workers=2) as base:
            command = [SDK.command[0], str(DRIVER), f"{base}/mcp", REDIRECT]
            with subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            ) as driver:
                try:
                    play(driver, base, house)
                finally:
                    driver.kill()
    return 0


def play(driver: "subprocess.Popen[str]", base: str, house: worlds.House) -> None:
    """Plays the owner; fails at the first answer that is not as it should be."""
    browser = Browser(base)
    browser.sign_in(new_code(house.path))
    path = heard(driver)["open"].removeprefix(base)
    back = answer(browser.allow(path, MAIL))
    tell(driver, {name: back[name] for name in ("code", "state", "iss")})
    assert "Lantern" in heard(driver)["text"]
    print("ok      consent and search")
    later(house, 3_601)
    tell(driver, {})
    assert "Lantern" in heard(driver)["text"]
    print("ok      refresh after expiry")
    grant_id = run_command(house, "grant", "list").split()[0]
    run_command(house, "grant", "revoke", grant_id)
    tell(driver, {})
    assert "open" in heard(driver)
    print("ok      cut off by revocation: the client asks to sign in again")


def heard(driver: "subprocess.Popen[str]") -> Any:
    assert driver.stdout is not None
    line = driver.stdout.readline()
    assert line, "the client ended"
    return json.loads(line)


def tell(driver: "subprocess.Popen[str]", message: dict[str, str]) -> None:
    assert driver.stdin is not None
    driver.stdin.write(json.dumps(message) + "\n")
    driver.stdin.flush()


if __name__ == "__main__":
    sys.exit(main())
