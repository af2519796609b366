"""What is printed when the studio listens at more than one address."""

from __future__ import annotations

import socket

import pytest

from torchcaps.studio import addresses
from torchcaps.studio.addresses import is_loopback, opened_at


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("10.0.0.1", False), ("x", False)],
)
def test_what_is_loopback(host, expected):
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("::1", "[::1]"), ("10.0.0.7", "10.0.0.7")],
)
def test_one_address_is_printed_as_it_was_given(host, expected):
    assert opened_at(host, 80) == (f"http://{expected}:80/", [])


@pytest.fixture
def network(monkeypatch):
    """A machine in two networks of IPv4 and one of IPv6."""

    def sources(family, routes):
        if family == socket.AF_INET6:
            return ["fe80::1%eth0", "::1", "2001:db8::7"]
        return ["192.168.0.7", "127.0.0.1", "10.0.0.7", "192.168.0.7", "169.254.3.3"]

    monkeypatch.setattr(addresses, "_sources", sources)


def test_every_address_that_another_machine_can_open_is_printed_once(network):
    four = ["http://192.168.0.7:80/", "http://10.0.0.7:80/"]
    assert opened_at("0.0.0.0", 80) == ("http://127.0.0.1:80/", four)
    assert opened_at("::", 80) == ("http://[::1]:80/", [*four, "http://[2001:db8::7]:80/"])


def test_without_a_route_the_name_of_the_machine_is_asked(monkeypatch):
    monkeypatch.setattr(addresses, "_sources", lambda family, routes: [])
    monkeypatch.setattr(addresses, "_named", lambda: ["127.0.1.1", "10.0.0.7"])
    assert opened_at("0.0.0.0", 80)[1] == ["http://10.0.0.7:80/"]


def test_what_is_found_here_can_be_bound():
    for name in addresses._of_this_machine(both=True):
        family = socket.AF_INET6 if ":" in name else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.bind((name, 0))
