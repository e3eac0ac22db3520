"""The server over HTTP: what it answers, and what it refuses."""

import asyncio
import json
import socket
import threading
import time
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest
import torch

pytest.importorskip("starlette", reason="needs the extra [play]")
from sfo.play import server as listening
from sfo.play.cases import Case
from sfo.play.workers import Busy, Workers


def ask(address, path, body=None, method=None, **headers):
    """Status, headers and body of an answer, whatever the status."""
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    try:
        with urlopen(Request(address + path, body, headers, method=method), timeout=30) as found:
            return found.status, found.headers, found.read()
    except HTTPError as error:
        return error.code, error.headers, error.read()


def unpack(body):
    """What the page makes of an answer."""
    length = int.from_bytes(body[:4], "little")
    meta = json.loads(body[4 : 4 + length])
    return meta, np.frombuffer(body[4 + length :], "<f4").reshape(meta["shape"])


def raw(address, request, seconds=30.0):
    """All that the server sends to a client that sends these bytes and waits."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=seconds) as client:
        client.sendall(request)
        parts = []
        while part := client.recv(65536):
            parts.append(part)
    return b"".join(parts)


def test_answers_are_the_services(address, service):
    status, headers, body = ask(address, "/api/models/waves/predict?seed=3&grid=4")
    meta, fields = unpack(body)
    assert (status, headers["cache-control"]) == (200, "no-store")
    np.testing.assert_array_equal(fields, service.predict("waves", Case(3), 4).fields)
    state = service.state("waves", Case(3)).fields.float().numpy()
    _, _, body = ask(address, "/api/models/waves/predict?grid=4", state.tobytes())
    np.testing.assert_allclose(unpack(body)[1], fields, atol=1e-4)
    _, _, body = ask(address, "/api/models/waves/solve?seed=3")
    meta, fields = unpack(body)
    np.testing.assert_array_equal(fields, service.solve("waves", Case(3)).fields)
    assert meta["words"] == "solver on 256 points"


def test_the_page_and_its_parts_come_with_their_types(address):
    kinds = {"/": "text/html", "/static/main.js": "javascript", "/static/style.css": "text/css"}
    for path, kind in kinds.items():
        status, headers, _ = ask(address, path)
        assert status == 200
        assert kind in headers["content-type"]
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/api/models/nothing", None, 404, "no model 'nothing'; known: waves"),
        ("/api/models/..%2f..%2fetc%2fpasswd/predict", None, 404, ""),
        ("/static/../app.py", None, 404, ""),
        ("/static/..%2fapp.py", None, 404, ""),
        ("/static/%2e%2e/%2e%2e/cli.py", None, 404, ""),
        ("/static//etc/passwd", None, 404, ""),
        ("/api/models/waves/predict?seed=-1", None, 422, "`seed` must be a whole number"),
        ("/api/models/waves/predict?seed=99999999", None, 422, "`seed` must be in 0.."),
        ("/api/models/waves/predict?grid=x", None, 422, "`grid` must be a whole number"),
        ("/api/models/waves/predict?grid=99", None, 422, "`grid` must be in 0..5"),
        ("/api/models/waves/predict", b"abc", 422, "256 bytes, got 3"),
        ("/api/models/waves/predict", b"{}" * 128, 422, "not finite"),
        ("/api/models/waves/solve", np.full(64, np.nan, "<f4").tobytes(), 422, "finite"),
        ("/api/models/waves/solve", np.full(64, 1e30, "<f4").tobytes(), 422, "initial"),
        ("/api/models/waves/predict", b"\0" * 5_000_000, 413, "at most 4,194,304 bytes"),
        ("/api/models/waves/kernel", b"", 405, "no such method"),
        ("/api/models/waves-fno/kernel", None, 422, "those of SFO are"),
    ],
)
def test_bad_requests_are_answered_in_one_sentence(address, path, body, status, words):
    found, headers, text = ask(address, path, body)
    assert found == status
    assert headers["content-type"] == "application/json"
    assert words in json.loads(text)["error"]
    assert b"Traceback" not in text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1234"}, 200),
        ({"Host": "[::1]:1234"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "10.0.0.1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
    ],
)
def test_other_sites_are_refused(address, headers, status):
    assert ask(address, "/api/models", **headers)[0] == status
    origin = headers.get("Origin")
    if status == 200 and origin is None and "Host" not in headers:
        assert ask(address, "/api/models", Origin=address)[0] == 200


def test_a_link_may_lead_to_the_page_and_to_nothing_else(address):
    link = dict(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document")
    assert ask(address, "/", **link)[0] == 200
    assert ask(address, "/api/models", **link)[0] == 403
    assert ask(address, "/", **{**link, "Sec_Fetch_Dest": "iframe"})[0] == 403


def test_methods_that_change_things_are_refused(address):
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert ask(address, "/api/models", method=method)[0] == 405


def test_what_is_not_http_is_refused(address):
    assert raw(address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").startswith(
        b"HTTP/1.1 400"
    )
    no_host = raw(address, b"GET /api/models HTTP/1.0\r\n\r\n")
    assert b"421" in no_host.split(b"\r\n")[0]


def test_a_body_that_is_longer_than_it_says_is_cut(address):
    head = b"POST /api/models/waves/predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    chunks = b"Transfer-Encoding: chunked\r\n\r\n" + b"100000\r\n" + b"\0" * 0x100000 + b"\r\n"
    chunks += 5 * (b"100000\r\n" + b"\0" * 0x100000 + b"\r\n") + b"0\r\n\r\n"
    try:
        answered = raw(address, head + chunks)
    except ConnectionError:
        return
    assert b" 413 " in answered.split(b"\r\n")[0]


@pytest.fixture
def hasty(service, monkeypatch):
    """A server that waits for nobody for long."""
    from sfo.play import app

    monkeypatch.setattr(app, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(listening, "CLIENT_TIMEOUT", 0.3)
    place = listening.listen("127.0.0.1", 0)
    server = listening.make_server(service, "127.0.0.1")
    thread = threading.Thread(target=server.run, kwargs=dict(sockets=[place]), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{place.getsockname()[1]}", server
    server.should_exit = True
    thread.join(10)


def test_slow_clients_are_cut_off(hasty):
    """Half a header, half a body, and an answer that is not read."""
    address, server = hasty
    assert raw(address, b"GET /api/models HTTP/1.1\r\nHo") == b""
    head = b"POST /api/models/waves/predict HTTP/1.1\r\nHost: localhost\r\n"
    answered = raw(address, head + b"Content-Length: 256\r\n\r\n\0\0\0\0")
    assert b" 408 " in answered.split(b"\r\n")[0]
    host, port = address.removeprefix("http://").split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((host, int(port)))
    many = b"GET /api/models/water/predict?grid=2 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200
    client.sendall(many)
    deadline = time.monotonic() + 30
    while server.server_state.connections and time.monotonic() < deadline:
        time.sleep(0.05)
    client.close()
    assert not server.server_state.connections


def test_a_client_that_goes_on_asking_keeps_its_connection():
    """It was cut off whenever it happened to be idle at two checks of the server."""
    h11 = pytest.importorskip("h11")
    protocol = object.__new__(listening.protocol_with_timeout(10.0))
    cut = []
    protocol.transport = SimpleNamespace(
        get_write_buffer_size=lambda: 0, abort=lambda: cut.append(1)
    )
    protocol.loop = SimpleNamespace(call_later=lambda *when: None)
    protocol.conn = SimpleNamespace(their_state=h11.IDLE)
    protocol.unread, protocol.idle, protocol.latest = 0, False, None
    for request in range(3):
        protocol.cycle = SimpleNamespace(number=request)
        protocol.check_progress()
    assert not cut
    protocol.check_progress()
    assert cut


def test_a_full_queue_refuses_and_a_client_that_leaves_takes_its_job_along():
    async def story():
        workers, begun, go_on = Workers(1, waiting=1), threading.Event(), threading.Event()
        done = []

        def work(name):
            begun.set()
            go_on.wait(10)
            done.append(name)
            return name

        first = asyncio.ensure_future(workers.run(work, "first"))
        await asyncio.to_thread(begun.wait, 10)
        second = asyncio.ensure_future(workers.run(work, "second"))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await workers.run(work, "third")
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        await asyncio.sleep(0)
        assert workers.jobs == 1
        go_on.set()
        assert await first == "first"
        assert await workers.run(work, "fourth") == "fourth"
        assert done == ["first", "fourth"]
        assert workers.jobs == 0

    asyncio.run(story())


def test_a_failure_of_ours_is_one_sentence_too(address, service, monkeypatch):
    def broken(name):
        raise KeyError("a secret of the server")

    monkeypatch.setattr(service, "kernel", broken)
    status, _, body = ask(address, "/api/models/waves/kernel")
    assert (status, json.loads(body)["error"]) == (
        500,
        "The server failed at this request; its terminal says why.",
    )


def test_many_clients_at_once_get_their_own_answers(address, service):
    expected = {seed: service.predict("waves", Case(seed)).fields for seed in range(4)}
    found = {}

    def client(number):
        _, _, body = ask(address, f"/api/models/waves/predict?seed={number % 4}")
        found[number] = unpack(body)[1]

    threads = [threading.Thread(target=client, args=(n,)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(24):
        assert torch.equal(torch.tensor(found[number]), expected[number % 4])


def test_it_says_who_can_reach_it(service, capsys, monkeypatch):
    class Nobody:
        def run(self, sockets):
            sockets[0].close()

    monkeypatch.setattr(listening, "make_server", lambda *_: Nobody())
    listening.serve(service, "127.0.0.1", 0, browser=False)
    assert "Only this machine can reach it" in capsys.readouterr().out
    listening.serve(service, "0.0.0.0", 0, browser=False)
    assert "whoever reaches this machine" in capsys.readouterr().out


def test_a_port_in_use_is_named(address):
    port = int(address.rpartition(":")[2])
    with pytest.raises(ValueError, match=f"Cannot listen on 127.0.0.1, port {port}: Address"):
        listening.listen("127.0.0.1", port)
