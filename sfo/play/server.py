"""The server: a socket, a protocol with a timeout, and what is printed on the terminal."""

import socket
import threading
import webbrowser
from typing import Any

from sfo.play.app import build_app
from sfo.play.guard import is_loopback
from sfo.play.service import Service

CONNECTIONS = 256
"""Number of clients at a time."""
CLIENT_TIMEOUT = 10.0
"""Seconds without progress after which a client is cut off."""


def serve(service: Service, host: str, port: int, *, browser: bool) -> None:
    """Answer until interrupted.

    Args:
        service: What answers.
        host: The address to listen on.
        port: Its port; 0: any that is free.
        browser: Open the page in a browser.
    """
    listening = listen(host, port)
    address = page_address(host, listening.getsockname()[1])
    print(f"Playground: {address}")
    if is_loopback(host):
        print("Only this machine can reach it; --host 0.0.0.0 would open it to the network.")
    else:
        print(f"It listens on {host}: whoever reaches this machine can use it.")
    print("Stop it with Ctrl-C.", flush=True)
    server = make_server(service, host)
    if browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    server.run(sockets=[listening])


def make_server(service: Service, host: str) -> Any:
    """A uvicorn server for a socket that is open already."""
    import uvicorn

    config = uvicorn.Config(
        build_app(service, host),
        http=protocol_with_timeout(CLIENT_TIMEOUT),
        ws="none",
        access_log=False,
        log_level="error",  # What a client gets wrong is said to the client.
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address, or an error that says why not."""
    if not 0 <= port <= 65535:
        raise ValueError(f"`port` must be in 0..65535, got {port}.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(CONNECTIONS)
    except OSError as error:
        raise ValueError(
            f"Cannot listen on {host}, port {port}: {error.strerror or error}. Choose another "
            "--port, or --port 0 for any that is free."
        ) from None
    return made


def page_address(host: str, port: int) -> str:
    """Where the page is.

    Example:
        >>> page_address("0.0.0.0", 80), page_address("::1", 8000)
        ('http://127.0.0.1:80/', 'http://[::1]:8000/')
    """
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"


def protocol_with_timeout(timeout: float) -> type:
    """uvicorn's protocol, but a client that makes no progress for so long is cut off.

    uvicorn itself waits indefinitely for the rest of a request's headers, and for a client that
    does not read its answer.

    Args:
        timeout: Seconds without progress after which a client is cut off.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class ProtocolWithTimeout(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.unread, self.idle = 0, False
            self.latest: Any = None
            self.watch = self.loop.call_later(timeout, self.check_progress)

        def connection_lost(self, exc: Exception | None) -> None:
            self.watch.cancel()
            super().connection_lost(exc)

        def check_progress(self) -> None:
            """Cut off a client that has neither asked nor read since the last check."""
            unread, idle = self.transport.get_write_buffer_size(), self.conn.their_state is h11.IDLE
            asked, self.latest = self.cycle is not self.latest, self.cycle
            if (idle and self.idle and not asked) or (unread and unread == self.unread):
                self.transport.abort()
                return
            self.unread, self.idle = unread, idle
            self.watch = self.loop.call_later(timeout, self.check_progress)

    return ProtocolWithTimeout
