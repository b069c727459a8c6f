"""Checks of the addresses to which webhooks may be delivered (events 2).

A shop manager chooses the address of a receiver, and the service connects to it from inside the
network of the shop. Without a check, a webhook could read the metadata service of a cloud or write
to a database without a password. The rules here are explicit, because ``ipaddress.is_global``
differs between Python versions.
"""

import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from app.errors import Sentence

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

UNPRIVILEGED_PORTS = range(1024, 65_536)
WEB_PORTS = frozenset({80, 443})

# The special-purpose registry of IANA (RFC 6890): what is not globally reachable unicast.
_NOT_GLOBAL_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared by the customers of a provider (RFC 6598)
            "127.0.0.0/8",
            "169.254.0.0/16",  # link-local, and the metadata service of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and the broadcast address
        ),
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
_NOT_GLOBAL_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments; Teredo is unwrapped before
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4 is unwrapped before
            "3fff::/20",  # documentation
        ),
    )
)

# Forms of IPv6 addresses that contain an IPv4 address, with the number of bits after it.
_WRAPPED_V4 = (
    (IPv6Network("::/96"), 0),  # IPv4-compatible (deprecated)
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # IPv4-translated
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
    (IPv6Network("2001::/32"), 64),  # Teredo: the server
)
_TEREDO = IPv6Network("2001::/32")
_ISATAP = frozenset({0x5EFE, 0x0200_5EFE})


REMEDY = (
    "Webhooks are only delivered to globally reachable addresses, and to the ports 80, 443, and "
    "1024 and above. The setting SHOP_WEBHOOK_ALLOWED_NETWORKS allows other addresses."
)
"""What users are told about a rejected address. It does not say what a name resolves to."""


class RefusedAddressError(Exception):
    """A receiver has an address or a port to which webhooks must not be delivered."""


def parse_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return networks in CIDR notation or single addresses, or raise ValueError for other texts."""
    return tuple(ip_network(text) for text in texts)


def require_port(port: int) -> None:
    """Raise RefusedAddressError unless a port is 80, 443, or 1024 and above (events 2)."""
    if port not in WEB_PORTS and port not in UNPRIVILEGED_PORTS:
        raise RefusedAddressError(Sentence("port {0} is not allowed", port))


def is_allowed(address: Address, allowed: Sequence[Network] = ()) -> bool:
    """Return whether webhooks may be delivered to an address. ``allowed`` are exceptions."""
    if _is_in(address, allowed):
        return True
    if isinstance(address, IPv4Address):
        return not _is_in(address, _NOT_GLOBAL_V4)
    if address.scope_id is not None:
        return False
    if not all(is_allowed(each, allowed) for each in unwrap(address)):
        return False
    if _is_in(address, [network for network, _ in _WRAPPED_V4]):
        return True
    return address in _GLOBAL_V6 and not _is_in(address, _NOT_GLOBAL_V6)


def unwrap(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address contains, or an empty list."""
    bits = int(address)
    found = [
        IPv4Address(bits >> after & 0xFFFF_FFFF)
        for network, after in _WRAPPED_V4
        if address in network
    ]
    if address in _TEREDO:
        found.append(IPv4Address(bits & 0xFFFF_FFFF ^ 0xFFFF_FFFF))  # the client, inverted
    if bits >> 32 & 0xFFFF_FFFF in _ISATAP:
        found.append(IPv4Address(bits & 0xFFFF_FFFF))
    return found


def require_host(host: str, allowed: Sequence[Network] = ()) -> None:
    """Raise RefusedAddressError if a host is rejected at every delivery, without a lookup.

    The host is a name in ASCII, or an address without brackets.
    """
    addresses = _fixed_addresses(host)
    if addresses and not any(is_allowed(address, allowed) for address in addresses):
        raise RefusedAddressError(Sentence("{0} is not globally reachable", host))


def _fixed_addresses(host: str) -> list[Address]:
    """Return the possible addresses of a host, if they are known without a lookup."""
    name = host.removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761, 6.3
        return [IPv4Address("127.0.0.1"), IPv6Address("::1")]
    if _is_address(host):
        return [ip_address(host)]
    try:
        return [IPv4Address(socket.inet_aton(host))]  # other forms, such as 127.1 and 0x7f000001
    except (OSError, ValueError):
        return []


async def resolve(
    host: str, port: int, allowed: Sequence[Network], look_up: Callable[[str], Awaitable[list[str]]]
) -> list[str]:
    """Resolve a host once and check every address.

    Args:
        host: a name in ASCII, or an address without brackets.
        allowed: exceptions.
        look_up: returns the addresses of a name.

    Returns:
        The addresses, in the order of the resolver.

    Raises:
        RefusedAddressError: the port or one of the addresses is not allowed. A host with a public
            and a private address is rejected, because its owner chooses which one is used.
        OSError: the name cannot be resolved.
    """
    require_port(port)
    found = [host] if _is_address(host) else await look_up(host)
    if not found:
        raise OSError("the name has no address")
    for each in found:
        if not is_allowed(ip_address(each), allowed):
            raise RefusedAddressError(Sentence("{0} is not globally reachable", str(each)))
    return found


def _is_address(host: str) -> bool:
    """Return whether a host is an address in its usual form, which needs no lookup."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)
