"""A Ray cluster of several nodes on this machine: the same Records, also when nodes are lost."""

import errno
import os
import random
import re
import signal
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from tiny_studies import measured, processes, study, tiny

from sfo.experiments.engines import make_engine
from sfo.experiments.engines.job import perform
from sfo.experiments.engines.ray import take
from sfo.experiments.results import Results, name
from sfo.experiments.runner import reproduce
from sfo.experiments.study import as_study
from sfo.experiments.worker import Job
from sfo.models.build import installed
from sfo.training.devices import Devices

pytestmark = pytest.mark.engines
ray = pytest.importorskip("ray", reason="needs the [ray] extra; `make test-engines` installs it")

SMALL_NODE = dict(num_cpus=1, object_store_memory=80 * 2**20, include_dashboard=False)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A head that does no work, and two nodes with one core each."""
    from ray._private import services
    from ray.cluster_utils import Cluster

    get_node = services.get_node

    def patient(*arguments):
        """Ray gives a node thirty seconds to start, which are few on a busy machine."""
        until = time.monotonic() + 300
        while True:
            try:
                return get_node(*arguments)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    monkeypatch.setattr(services, "get_node", patient)
    monkeypatch.setenv("SFO_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made = Cluster(initialize_head=True, head_node_args={**SMALL_NODE, "num_cpus": 0})
    for _ in range(2):
        made.add_node(**{k: v for k, v in SMALL_NODE.items() if k != "include_dashboard"})
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def through_ray(runs, folder, cluster, progress=lambda state: None, analyses=()):
    results = Results(folder)
    engine = make_engine("ray", results, workers=2, address=cluster.address)
    return reproduce([study(runs, analyses)], results, engine=engine, progress=progress)


def calm(runs, folder, analyses=()):
    for run in runs:
        perform(Job(run, tuple(analyses)).to_json(), str(folder))
    return measured(folder)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", r"No Ray cluster answers at 127\.0\.0\.1:1: start one with"),
        ("nowhere", r"`address` must be HOST:PORT"),
    ],
)
def test_an_address_that_does_not_answer(address, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        make_engine("ray", Results(tmp_path), address=address)


NOT_OF_RAY = {
    "silent": b"",
    "ssh": b"SSH-2.0-server\r\n",
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    # Settings, and `:status: 404` by its number.
    "http2": b"\0\0\0\4\0\0\0\0\0" + b"\0\0\1\1\5\0\0\0\1\x8d",
}


@pytest.mark.parametrize("says", NOT_OF_RAY.values(), ids=NOT_OF_RAY)
def test_a_port_that_is_not_of_ray(says, tmp_path, monkeypatch):
    """Silent, or of another service: Ray itself would try for up to thirteen minutes."""
    monkeypatch.setattr("sfo.experiments.engines.ray.CLUSTER_TIMEOUT", 0.3)
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=lambda: server.accept()[0].sendall(says), daemon=True).start()
        begun = time.monotonic()
        with pytest.raises(ValueError, match=rf"^No Ray cluster answers at 127\.0\.0\.1:{port}: "):
            make_engine("ray", Results(tmp_path), address=f"127.0.0.1:{port}")
    assert time.monotonic() - begun < 5


def test_a_cluster_of_this_machine_that_does_not_start_is_told_in_a_sentence(tmp_path, monkeypatch):
    def late(**options):
        raise Exception("The current node timed out during startup. This could happen because")

    monkeypatch.setattr(ray, "init", late)
    said = r"^Ray could not start a cluster of this machine: The current node timed out during st"
    with pytest.raises(ValueError, match=said):
        make_engine("ray", Results(tmp_path))


def test_a_cluster_that_asks_for_a_token_is_told_in_a_sentence(tmp_path, monkeypatch, capfd):
    """Ray prints why itself, each second, and ends with an error that does not say it."""

    def refused(**options):
        os.write(2, b"Unauthenticated: InvalidAuthToken: Authentication token is missing\n")
        raise ConnectionError("Failed to connect")

    monkeypatch.setattr("sfo.experiments.engines.ray.answers_grpc", lambda *_: True)
    monkeypatch.setattr(ray, "init", refused)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        said = rf"^The Ray cluster at {address} asks for its token: copy ~/\.ray/auth_token"
        with pytest.raises(ValueError, match=said):
            make_engine("ray", Results(tmp_path), address=address)
    assert capfd.readouterr().err == ""


def test_a_record_that_the_results_have_no_room_for_is_kept_elsewhere(tmp_path, monkeypatch):
    class Small(Results):
        def take(self, files):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = r"No space left on device for the Record of run, kept in (\S+) to be copied to"
    with pytest.raises(OSError, match=said) as raised:
        take(Small(tmp_path / "results"), "run", {"records/run.json": "{}"})
    kept = Path(re.search(said, str(raised.value))[1])
    assert (kept / "records" / "run.json").read_text() == "{}"


@pytest.mark.timeout(1800)
def test_a_cluster_without_gpus_refuses_runs_on_them(tmp_path, cluster):
    """Ray would let them wait for ever; the machine that gives the command needs no GPU itself."""
    with pytest.raises(ValueError, match="got cuda, and `ray status` lists no GPU"):
        make_engine(
            "ray", Results(tmp_path), address=cluster.address, devices=Devices.elsewhere("cuda")
        )
    assert not ray.is_initialized()


@pytest.mark.timeout(1800)
def test_a_lost_node_costs_no_record(tmp_path, cluster):
    """Three runs and an analysis each; one of two nodes is killed while it works."""
    runs, removed = [tiny(seed, epochs=40) for seed in range(3)], []
    begun = Results(tmp_path / "scratch")
    over = threading.Event()

    def lose_a_node():
        """A thread, because the runner looks too seldom: a run may be over in between."""
        while not over.wait(0.01):
            if any((begun.run_folder(run) / "checkpoints").exists() for run in runs):
                removed.append(cluster.worker_nodes.copy().pop())
                return cluster.remove_node(removed[0], allow_graceful=False)

    thread = threading.Thread(target=lose_a_node)
    thread.start()
    try:
        state = through_ray(runs, tmp_path / "ray", cluster, analyses=["coefficients"])
    finally:
        over.set()
        thread.join()
    assert (len(removed), state.failed) == (1, {})
    # One whose node was lost between its end and its answer is found by the next task, not done.
    found = measured(tmp_path / "ray")
    assert len(found) == 2 * len(runs)
    assert found == calm(runs, tmp_path / "calm", ["coefficients"])
    left = [path for path in (tmp_path / "scratch").rglob("*.json")]
    assert left == [], "nodes keep nothing"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_jobs_and_ten_kills(tmp_path, cluster):
    runs = [tiny(seed) for seed in range(100)]
    chance = random.Random(0)
    when = sorted(chance.sample(range(5, 95), 10))

    def disturb(state):
        if when and len(state.seconds) >= when[0]:
            workers = processes("ray::run_remotely")
            if workers:
                when.pop(0)
                os.kill(chance.choice(workers), signal.SIGKILL)

    state = through_ray(runs, tmp_path / "ray", cluster, disturb)
    assert (when, state.failed) == ([], {})
    assert len(state.seconds) == len(runs)
    assert measured(tmp_path / "ray") == calm(runs, tmp_path / "calm")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_smoke_main_table_over_a_cluster_that_loses_a_node(tmp_path, cluster, monkeypatch):
    """All models that are installed, on all benchmarks; a node is killed after a third of them."""
    monkeypatch.setitem(os.environ, "SFO_DATA", str(tmp_path / "data"))
    main, removed, seen = as_study("main"), [], Counter()

    def is_possible(cell):
        return installed(cell.experiment.model.name)

    runs = {name(cell.experiment) for cell in main.cells("smoke", 1) if is_possible(cell)}
    engine = make_engine("ray", Results(tmp_path / "ray"), workers=2, address=cluster.address)
    next_event = engine.next_event

    def counted(timeout):
        happened = next_event(timeout)
        seen.update([] if happened is None else [(happened[0], happened[1]["event"])])
        return happened

    def lose_a_node(state):
        if not removed and 3 * len(state.seconds) >= len(runs):
            removed.append(cluster.worker_nodes.copy().pop())
            cluster.remove_node(removed[0], allow_graceful=False)

    monkeypatch.setattr(engine, "next_event", counted)
    asked = dict(scale="smoke", include=is_possible)
    state = reproduce(
        [main], Results(tmp_path / "ray"), engine=engine, progress=lose_a_node, **asked
    )
    assert (len(removed), state.failed, state.seconds.keys()) == (1, {}, runs)
    assert {run: seen[run, "done"] for run in runs} == dict.fromkeys(runs, 1), "none twice"
    assert reproduce([main], Results(tmp_path / "local"), workers=1, **asked).failed == {}
    found = measured(tmp_path / "ray")
    assert len(list((tmp_path / "ray/records").glob("*.json"))) == len(runs)
    assert found == measured(tmp_path / "local")
