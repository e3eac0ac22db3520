"""What is told from a server's first frames."""

import socket

import pytest

from sfo.experiments.engines.grpc import answers_grpc

SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
CHANGED = b"\x3f\xe1\x1f"
"""The table of headers has 4,096 bytes, which servers of gRPC may say first."""


def headers(block):
    return len(block).to_bytes(3, "big") + bytes((1, 5, 0, 0, 0, 1)) + block


@pytest.mark.parametrize(
    ("frames", "is_grpc"),
    [
        (SETTINGS + headers(b"\x88\x40\x0bgrpc-status\x0212"), True),
        (SETTINGS + SETTINGS + headers(CHANGED + b"\x88"), True),
        (SETTINGS + headers(b"\x8d"), False),
        (SETTINGS + headers(b""), False),
        (SETTINGS, False),
        (b"\xff" * 40, False),
    ],
    ids=["ok", "after a change of size", "404", "empty", "greeting alone", "noise"],
)
def test_status_200_is_the_answer_of_grpc(frames, is_grpc):
    here, there = socket.socketpair()
    with here, there:
        there.sendall(frames)
        there.shutdown(socket.SHUT_WR)
        assert answers_grpc(here, "head", seconds=5) == is_grpc


def test_a_server_of_grpc_answers():
    grpc = pytest.importorskip("grpc", reason="comes with tensorboard")
    from concurrent.futures import ThreadPoolExecutor

    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", port)) as there:
            assert answers_grpc(there, "localhost", seconds=10)
    finally:
        server.stop(None)


def test_who_says_nothing_is_not_waited_for():
    here, there = socket.socketpair()
    with here, there, pytest.raises(TimeoutError):
        answers_grpc(here, "head", seconds=0.05)
