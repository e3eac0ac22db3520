"""The playground's server: milliseconds of a prediction through HTTP, and a minute under load.

    python benchmarks/playground.py                  # both; --seconds 10 for a shorter load

A server of its own is started as `sfo play` starts it, with one thread. Untrained recommended
models stand for trained ones: 1D Allen–Cahn on 256 points and 101 times, 2D Shallow Water on
64 × 64 points and 21 times of three fields. 100 clients ask at once, and among them some send
what must be refused, read slowly, or leave.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np
import torch

from sfo.play.server import listen, make_server
from sfo.play.service import Service
from sfo.play.shown import ListedModel, LoadedModel, solver_source
from sfo.registry import BENCHMARKS
from sfo.training.config import Experiment
from sfo.training.prepare import DataShape, build


def untrained(benchmark: str) -> ListedModel:
    """The recommended SFO at the desk scale, with the weights of its seed."""
    experiment = Experiment.of(benchmark, preset="recommended", scale="desk")
    shape = DataShape.of_benchmark(experiment)

    def load() -> LoadedModel:
        model = build(experiment, shape).eval()
        return LoadedModel(model, shape, solver_source(experiment, shape), "Untrained.")

    return ListedModel(benchmark, "SFO", benchmark, BENCHMARKS[benchmark].title, load)


def serve() -> None:
    """The child's part: say the port, then answer until the parent ends it."""
    torch.set_num_threads(1)
    service = Service({name: untrained(name) for name in ("allen_cahn", "shallow_water")})
    place = listen("127.0.0.1", 0)
    print(place.getsockname()[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    make_server(service, "127.0.0.1").run(sockets=[place])


def resident(pid: int) -> float:
    """Memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def processor(pid: int) -> float:
    """Seconds that a process has computed, which other processes do not make longer."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_predictions(address: str, pid: int, repeats: int) -> None:
    """One request after another, each with its own drawn state, on one connection."""
    with httpx.Client(base_url=address, timeout=60) as client:
        for name in ("allen_cahn", "shallow_water"):
            about = client.get(f"/api/models/{name}").json()
            state = np.frombuffer(client.get(f"/api/models/{name}/state?seed=1").content, "<f4")
            state = state[-int(np.prod(about["state_shape"])) :]
            whole, inside = [], []
            for number in range(repeats + 3):
                if number == 3:
                    before = processor(pid)
                body = (state * (1 + 1e-4 * number)).astype("<f4").tobytes()
                start = time.perf_counter()
                answer = client.post(f"/api/models/{name}/predict", content=body)
                whole.append(1000 * (time.perf_counter() - start))
                inside.append(unpack(answer.content)[0]["milliseconds"])
            computed = 1000 * (processor(pid) - before) / repeats
            grid = " × ".join(map(str, about["grids"][about["home"]]))
            ends = np.quantile(whole[3:], [0.5, 0.9])
            print(
                f"{name}, {grid} points: prediction through HTTP {ends[0]:.1f} ms (90 % below "
                f"{ends[1]:.1f} ms), of which the model {statistics.median(inside[3:]):.1f} ms; "
                f"the server computes {computed:.1f} ms per request; "
                f"{len(answer.content) / 1e6:.2f} MB"
            )


def unpack(body: bytes) -> tuple[dict, bytes]:
    length = int.from_bytes(body[:4], "little")
    return json.loads(body[4 : 4 + length]), body[4 + length :]


GOOD = [
    ("GET", "/api/models/allen_cahn/predict?seed={n}", None, (200, 503)),
    ("GET", "/api/models/allen_cahn/predict?seed={n}&grid=1", None, (200, 503)),
    ("GET", "/api/models/allen_cahn/solve?seed={few}", None, (200, 503)),
    ("GET", "/api/models/allen_cahn/kernel", None, (200, 503)),
    ("GET", "/api/models/shallow_water/predict?seed={few}&grid=1", None, (200, 503)),
    ("GET", "/", None, (200,)),
    ("GET", "/static/main.js", None, (200,)),
]
BAD = [
    ("POST", "/api/models/allen_cahn/predict", np.full(256, np.nan, "<f4").tobytes(), (422, 503)),
    ("POST", "/api/models/allen_cahn/predict", b"{not numbers}", (422, 503)),
    ("POST", "/api/models/allen_cahn/solve", b"\0" * 1000, (422, 503)),
    ("POST", "/api/models/allen_cahn/predict", b"\0" * 5_000_000, (413,)),
    ("GET", "/api/models/..%2f..%2fetc%2fpasswd/predict", None, (404, 503)),
    ("GET", "/static/..%2fapp.py", None, (404,)),
    ("GET", "/api/models/allen_cahn/predict?grid=999", None, (422, 503)),
]


async def client(
    number: int, session: httpx.AsyncClient, until: float, seen: Counter, waits: list
) -> None:
    """Ask for one thing after another; every seventh request is a bad one."""
    random = np.random.default_rng(number)
    asked = 0
    while time.monotonic() < until:
        rows = BAD if asked % 7 == number % 7 else GOOD
        method, path, body, allowed = rows[random.integers(len(rows))]
        path = path.format(n=random.integers(10_000), few=random.integers(8))
        start = time.monotonic()
        try:
            answer = await session.request(method, path, content=body)
        except httpx.TransportError as error:
            seen[f"{type(error).__name__} at {method} {len(body or b''):,} bytes"] += 1
            continue
        asked += 1
        waits.append(time.monotonic() - start)
        seen[answer.status_code] += 1
        if answer.status_code not in allowed or b"Traceback" in answer.content:
            seen[f"WRONG: {answer.status_code} for {path}"] += 1
        if answer.status_code == 503:
            await asyncio.sleep(float(answer.headers.get("retry-after", 1)))


async def rude(address: str, until: float, seen: Counter) -> None:
    """Connections that leave in the middle, that send half a request, and that do not read."""
    host, port = address.removeprefix("http://").split(":")
    ask = b"GET /api/models/shallow_water/predict?seed=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    half = b"POST /api/models/allen_cahn/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9"
    while time.monotonic() < until:
        for words, stay in ((ask, 0.01), (half, 2.0), (ask * 20, 1.0), (b"\x16\x03nonsense", 0.1)):
            try:
                _, writer = await asyncio.open_connection(host, int(port))
                writer.write(words)
                await writer.drain()
                await asyncio.sleep(stay)
                writer.transport.abort()
                seen["left rudely"] += 1
            except OSError as error:
                seen[type(error).__name__] += 1


async def load(address: str, pid: int, seconds: float, clients: int) -> None:
    """All clients at once; the server's memory every fifth of the time."""
    until = time.monotonic() + seconds
    seen, waits, memory = Counter(), [], []

    async def watch() -> None:
        while time.monotonic() < until:
            memory.append(resident(pid))
            await asyncio.sleep(seconds / 12)

    many = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=address, timeout=90, limits=many) as session:
        good = [client(number, session, until, seen, waits) for number in range(clients)]
        await asyncio.gather(watch(), *good, *[rude(address, until, seen) for _ in range(5)])
    memory.append(resident(pid))
    print(f"{clients} clients for {seconds:.0f} s: {len(waits):,} answers; {dict(seen)}")
    quantiles = np.quantile(waits, [0.5, 0.95, 1.0])
    print("Waits: median {:.2f} s, 95 % below {:.2f} s, longest {:.2f} s".format(*quantiles))
    print("Server's memory in MB over the time:", " ".join(f"{m:.0f}" for m in memory))
    wrong = [key for key in seen if isinstance(key, str) and key.startswith("WRONG")]
    print("Wrong answers:", wrong or "none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    choices = parser.parse_args()
    if choices.serve:
        serve()
        return
    import subprocess

    command = [sys.executable, __file__, "--serve"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        try:
            measure_predictions(address, server.pid, choices.repeats)
            if choices.seconds:
                asyncio.run(load(address, server.pid, choices.seconds, choices.clients))
                time.sleep(11)
                print(f"Memory when all have gone: {resident(server.pid):.0f} MB")
                with httpx.Client(base_url=address) as session:
                    print("Still answers:", session.get("/api/models").status_code)
        finally:
            server.stdin.close()
            server.wait(20)


if __name__ == "__main__":
    main()
