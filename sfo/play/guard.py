"""Who may ask: a wrapper around the app that refuses foreign sites and never shows a traceback."""

import ipaddress
import json
import logging
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LOG = logging.getLogger("sfo.play")
HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Guard:
    """Checks Host, Origin and method of every request, and adds headers to every answer.

    A name that another site points at this machine (DNS rebinding) is not among the hosts. A
    browser says with Origin and Sec-Fetch-Site that a page of another site is asking; only a link
    to the page itself may come from elsewhere.

    Args:
        app: What answers.
        host: The address that the server listens on; if it is no loopback address, any numeric
            address and the machine's own name are hosts too.
    """

    def __init__(self, app: App, host: str = "127.0.0.1") -> None:
        self.app = app
        self.names = {"localhost", host.strip("[]").lower()}
        self.open = not is_loopback(host)
        if self.open:
            self.names.add(socket.gethostname().lower())

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                rows = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *rows]}
            await send(message)

        problem = self.refusal(scope)
        if problem is not None:
            await answer(send_with_headers, *problem)
            return
        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            LOG.exception("%s %s failed", scope["method"], scope["path"])
            if not started:
                await answer(send_with_headers, 500, "The server failed at this request.")

    def refusal(self, scope: Message) -> tuple[int, str] | None:
        """Status and sentence, or None for a request that may pass."""
        rows = scope["headers"]
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in rows}
        hosts = [v for k, v in rows if k == b"host"]
        host = headers.get("host", "")
        if len(hosts) != 1 or not self.is_host(host):
            return 421, "The request names another host than this server."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "Only GET, HEAD and POST are answered."
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin.lower() != f"{scope['scheme']}://{host}".lower():
            return 403, "Requests from other sites are refused."
        is_link = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        is_link = is_link and headers.get("sec-fetch-dest") == "document" and scope["path"] == "/"
        if site not in (None, "same-origin", "none") and not is_link:
            return 403, "Requests from other sites are refused."
        return None

    def is_host(self, host: str) -> bool:
        """Whether a Host header may stand for this server; its port does not matter.

        Example:
            >>> guard = Guard(None)
            >>> guard.is_host("localhost:8000"), guard.is_host("evil.example:8000")
            (True, False)
        """
        name = host.lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        elif name.count(":") == 1:
            name = name.partition(":")[0]
        if name in self.names or is_loopback(name):
            return True
        return self.open and _address(name) is not None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    if host == "localhost":
        return True
    address = _address(host.strip("[]"))
    return address is not None and address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


async def answer(send: Send, status: int, sentence: str, **headers: str) -> None:
    """A sentence as JSON."""
    body = json.dumps({"error": sentence}).encode()
    rows = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    encoded = [(k.replace("_", "-").encode(), v.encode()) for k, v in rows.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
