"""Run the studio on this machine until Ctrl-C."""

from __future__ import annotations

import signal
import socket
import threading
import warnings
import webbrowser
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

import torch

from torchcaps.errors import TorchcapsError
from torchcaps.studio.addresses import is_loopback, opened_at
from torchcaps.studio.catalogue import Catalogue
from torchcaps.studio.limits import DEFAULT_LIMITS, Limits, give_memory_back

if TYPE_CHECKING:
    import uvicorn

__all__ = ["DEFAULT_PORT", "serve"]

DEFAULT_PORT = 8765


def serve(
    catalogue: Catalogue,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = True,
    say: Callable[[str], None] = print,
    on_start: Callable[[uvicorn.Server], None] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> None:
    """Answer requests until the process is interrupted.

    Args:
        host: address to bind to; anything but a loopback address lets other machines in.
        port: 0 stands for 8765, or a free one where that is taken.
        browser: open the page.
        say: gets the lines for the user.
        on_start: gets the server once it listens; ``server.should_exit = True`` ends it.
        limits: on connections, bodies and the time that a request may take to come.
    """
    try:
        import uvicorn

        from torchcaps.studio.app import create_app
        from torchcaps.studio.protocol import limited_protocol
    except ImportError as error:
        raise TorchcapsError('the studio needs FastAPI and uvicorn; pip install "torchcaps[studio]"') from error
    listener = _listen(host, port)
    address, others = opened_at(host, listener.getsockname()[1])
    app = create_app(catalogue, hosts=() if is_loopback(host) else (host, socket.gethostname(), "*"), limits=limits)
    config = uvicorn.Config(
        app,
        http=limited_protocol(limits),
        ws="none",
        log_level="error",  # who sends what is no HTTP is told so, the terminal need not be
        server_header=False,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=65_536,
        callback_notify=give_memory_back,
        timeout_notify=10,
    )
    warnings.filterwarnings(
        "ignore", category=UserWarning, module="PIL"
    )  # the sender is told, the terminal need not be
    server = _announcing_server(config, lambda running: _started(running, address, others, browser, say, on_start))
    threads = torch.get_num_threads()
    # Two threads work for the studio; each with all cores would have them fight for those.
    torch.set_num_threads(max(1, threads // 2))
    try:
        server.run(sockets=[listener])
    finally:
        torch.set_num_threads(threads)
        listener.close()


def _started(
    server: uvicorn.Server,
    address: str,
    others: list[str],
    browser: bool,
    say: Callable[[str], None],
    on_start: Callable[[uvicorn.Server], None] | None,
) -> None:
    say(f"The studio is at {address} (Ctrl-C ends it)")
    if others:
        say(f"Other machines in the network open {' or '.join(others)}")
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    if on_start is not None:
        on_start(server)


def _announcing_server(config: uvicorn.Config, started: Callable[[uvicorn.Server], None]) -> uvicorn.Server:
    import uvicorn

    interrupts: list[int] = []

    class Announcing(uvicorn.Server):
        async def main_loop(self) -> None:
            started(self)  # not earlier: until here an interrupt would leave the application without its end
            await super().main_loop()

        def run(self, sockets: list[socket.socket] | None = None) -> None:
            super().run(sockets)
            if signal.SIGINT in interrupts:  # one that comes before the server waits is lost on its way out
                raise KeyboardInterrupt

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            interrupts.append(sig)
            super().handle_exit(sig, frame)

    return Announcing(config)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    failure: OSError | None = None
    for candidate in (DEFAULT_PORT, 0) if port == 0 else (port,):
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, asyncio sends without delay
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if host == "::" and socket.has_dualstack_ipv6():
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # the default differs among systems
            listener.bind((host, candidate))
            listener.listen(512)
            return listener
        except (OSError, OverflowError) as error:
            listener.close()
            failure = error if isinstance(error, OSError) else OSError(str(error))
    raise TorchcapsError(
        f"cannot listen on {host} port {port or DEFAULT_PORT}: {failure}; choose another with --port or --host"
    ) from failure
