"""Whether it is a gRPC server, as those of Ray are, that answers at a port.

gRPC is HTTP/2 (RFC 9113). A gRPC server answers every call with status 200, also one of a method
that it does not have; what else speaks HTTP/2, such as a proxy, has another status for it.
"""

import socket
import time
from typing import BinaryIO

DATA, HEADERS, SETTINGS = 0, 1, 4
"""Types of frames."""
END_STREAM, END_HEADERS = 1, 4
LONGEST = 2**14
"""Bytes of the longest frame that is sent unasked."""
STATUS_200 = 0x88
"""`:status: 200`, by its number in HPACK's table (RFC 7541, appendix A)."""


def answers_grpc(there: socket.socket, host: str, seconds: float) -> bool:
    """Call a method that no server has, and see whether the answer is one of gRPC.

    Args:
        there: The connection.
        host: The name by which the server is asked for.
        seconds: Time for the answer; `TimeoutError` if nothing comes in so long.
    """
    deadline = time.monotonic() + seconds
    there.settimeout(seconds)
    there.sendall(
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(SETTINGS, 0, stream=0)
        + _frame(HEADERS, END_HEADERS, stream=1, content=_headers(host))
        + _frame(DATA, END_STREAM, stream=1, content=bytes(5))
    )
    with there.makefile("rb") as answer:
        while time.monotonic() < deadline:
            kind, content = _read_frame(answer)
            if kind is None:
                return False
            if kind == HEADERS:
                return _status(content) == STATUS_200
    return False


def _headers(host: str) -> bytes:
    """The headers of a call: POST and http by their numbers, the rest in full."""
    return b"".join(
        [
            b"\x83\x86",
            b"\x04" + _text("/sfo/hello"),
            b"\x01" + _text(host[:100]),
            b"\x0f\x10" + _text("application/grpc"),
            b"\x00" + _text("te") + _text("trailers"),
        ]
    )


def _text(words: str) -> bytes:
    encoded = words.encode("ascii", errors="replace")
    return bytes((len(encoded),)) + encoded


def _frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    head = len(content).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + content


def _read_frame(answer: BinaryIO) -> tuple[int | None, bytes]:
    """Type and content of the next frame; None where there is none."""
    head = answer.read(9)
    size = int.from_bytes(head[:3], "big")
    if len(head) < 9 or size > LONGEST:
        return None, b""
    return head[3], answer.read(size)


def _status(headers: bytes) -> int:
    """The first header by its number, behind changes of the table's size."""
    at = 0
    while at < len(headers) and headers[at] & 0xE0 == 0x20:
        at += 1
        if headers[at - 1] & 0x1F == 0x1F:  # The size goes on in bytes, of which the last is small.
            while at < len(headers) and headers[at] & 0x80:
                at += 1
            at += 1
    return headers[at] if at < len(headers) else 0
