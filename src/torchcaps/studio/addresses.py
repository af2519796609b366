"""The addresses under which the studio is opened, from this machine and from others in its network."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Iterator

__all__ = ["is_loopback", "opened_at"]

EVERY = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}  # binds to all addresses → loopback among them
# One address in each kind of network: documentation, private ones, a shared one. Nothing is sent there.
ROUTES = ("192.0.2.1", "192.168.255.254", "10.255.255.254", "172.31.255.254", "100.127.255.254")
ROUTES_IPV6 = ("2001:db8::1", "fdff::1")


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def opened_at(host: str, port: int) -> tuple[str, list[str]]:
    """The address for this machine's browser, and those for other machines where they differ from it."""
    if host not in EVERY:
        return _address(host, port), []
    others = _of_this_machine(both=host == "::")
    return f"http://{EVERY[host]}:{port}/", [_address(name, port) for name in others]


def _address(name: str, port: int) -> str:
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def _of_this_machine(both: bool) -> list[str]:
    """Its addresses in networks, IPv4 first; without IPv6 unless ``both`` are wanted."""
    found = list(
        _usable([*_sources(socket.AF_INET, ROUTES), *(_sources(socket.AF_INET6, ROUTES_IPV6) if both else ())])
    )
    return found or [name for name in _usable(_named()) if both or ":" not in name]


def _sources(family: socket.AddressFamily, routes: Iterable[str]) -> Iterator[str]:
    """From where the system would send; connecting a UDP socket looks the route up and sends nothing."""
    for route in routes:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((route, 9))
                yield probe.getsockname()[0]
        except OSError:  # no such route
            continue


def _named() -> list[str]:
    """What the machine's own name stands for; without a route this is what is left."""
    try:
        return [str(entry[4][0]) for entry in socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)]
    except OSError:
        return []


def _usable(names: Iterable[str]) -> Iterator[str]:
    """Once each, without loopback, and without link-local addresses, which another machine cannot open as they are."""
    for name in dict.fromkeys(names):
        address = ipaddress.ip_address(name.partition("%")[0])
        if not (address.is_loopback or address.is_link_local or address.is_unspecified):
            yield name
