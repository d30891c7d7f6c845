"""Which addresses are public: by the table of the registries, whatever Python it runs on."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from service.networks import RESERVED, REACHABLE, UNICAST, is_public
from tests.helpers.server import ROOT

BLOCKS = (*RESERVED, *REACHABLE, *UNICAST)
ASK = """
import json, sys
from service.networks import is_public
print(json.dumps([is_public(address) for address in json.load(sys.stdin)]))
"""


def pythons() -> list[str]:
    """The Pythons of this machine that Rung runs on: on PATH, or installed beside this one."""
    beside = Path(sys.base_prefix).resolve().parent.glob("*/bin/python3.*")
    paths = {str(path) for path in beside if re.fullmatch(r"python3\.\d+", path.name)}
    paths |= {path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))}
    version = "import sys; print(sys.version_info >= (3, 11))"
    return sorted(
        path
        for path in {*paths, sys.executable}
        if subprocess.run([path, "-c", version], capture_output=True, text=True).stdout == "True\n"
    )


def ends() -> Iterator[str]:
    """The first and the last address of each block, and the addresses before and after them."""
    for block in map(ip_network, BLOCKS):
        kind = type(block.network_address)
        for number in (int(block[0]) - 1, int(block[0]), int(block[-1]), int(block[-1]) + 1):
            if 0 <= number < 2**block.max_prefixlen:
                yield str(kind(number))


def naive(address: str) -> bool:
    """The same by the most specific block that contains an address."""
    ip = ip_address(address)
    blocks = [block for block in BLOCKS if ip in ip_network(block)]
    narrowest = max(blocks, key=lambda block: ip_network(block).prefixlen, default=None)
    return ip.version == 4 if narrowest is None else narrowest not in RESERVED


@pytest.mark.parametrize("python", pythons())
def test_both_ends_of_every_block_are_decided_alike_on_every_python(python: str) -> None:
    addresses = list(dict.fromkeys(ends()))
    assert len(addresses) > 3 * len(BLOCKS) / 2
    command = [python, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{ASK}"]
    done = subprocess.run(command, input=json.dumps(addresses), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers = dict(zip(addresses, json.loads(done.stdout), strict=True))
    assert answers == {address: naive(address) for address in addresses}


def test_every_exception_lies_inside_a_block() -> None:
    for block in map(ip_network, REACHABLE):
        assert any(
            ip_network(wide).version == block.version and ip_network(wide).supernet_of(block)
            for wide in RESERVED
        ), block


@pytest.mark.parametrize(
    ("address", "public"),
    [
        *(("8.8.8.8", True), ("2606:4700::1111", True), ("192.0.0.9", True)),
        *(("127.0.0.1", False), ("10.0.0.1", False), ("192.168.1.1", False), ("0.0.0.0", False)),
        *(("169.254.169.254", False), ("100.64.0.1", False), ("224.0.0.1", False)),
        *(("255.255.255.255", False), ("198.18.0.1", False), ("203.0.113.1", False)),
        *(("192.0.0.192", False), ("3fff::1", False), ("5f00::1", False)),
        *(("::1", False), ("::", False), ("fe80::1%eth0", False), ("fd00::1", False)),
        *(("::ffff:10.0.0.1", False), ("::ffff:8.8.8.8", False), ("64:ff9b::a00:1", False)),
        *(("2002:a00:1::", False), ("2001:0:a00:1::", False), ("ff02::1", False)),
        *(("2001:db8::1", False), ("100::1", False), ("::8.8.8.8", False)),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public
