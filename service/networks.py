"""Determines which IP addresses belong to the public internet.

Loopback addresses are recognized here too.

`ipaddress` differs between versions of Python, and lags behind the registries. So this table
decides: https://www.iana.org/assignments/iana-ipv4-special-registry and
iana-ipv6-special-registry, as of October 2025, with multicast.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

#: The special-purpose blocks whose column "Globally Reachable" is False or N/A.
RESERVED: Final = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
    *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    *("::/128", "::1/128", "::ffff:0:0/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64"),
    *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7"),
    *("fe80::/10", "ff00::/8"),
)
#: The blocks inside those that are globally reachable.
REACHABLE: Final = (
    *("192.0.0.9/32", "192.0.0.10/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128"),
    *("2001:3::/32", "2001:4:112::/48", "2001:20::/28", "2001:30::/28"),
)
#: IPv6 has unicast addresses of the internet nowhere else. NAT64 (64:ff9b::/96) is reachable too,
#: but its addresses contain IPv4 addresses, which may be private.
UNICAST: Final = ("2000::/3",)


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet.

    IPv6 addresses that contain an IPv4 address (mapped, NAT64, 6to4, Teredo) do not count.
    """
    ip = ip_address(address.partition("%")[0])
    if _in(ip, RESERVED):
        return _in(ip, REACHABLE)
    return ip.version == 4 or _in(ip, UNICAST)


def is_loopback(address: str | None) -> bool:
    """Whether a text is a loopback address, which an IPv6 address may contain."""
    ip = parse_address(address or "")
    return ip is not None and ip.is_loopback


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """The IP address in a text; an IPv4 address mapped into IPv6 becomes IPv4."""
    try:
        ip = ip_address(text)
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip


def _in(ip: IPv4Address | IPv6Address, blocks: tuple[str, ...]) -> bool:
    return any(ip in ip_network(block) for block in blocks)
