"""Untrained models, a small run on data of one's own, and a server that shows them."""

import threading

import numpy as np
import pytest

import sfo
from sfo.play.service import Service
from sfo.play.shown import ListedModel, LoadedModel, find_models, solver_source
from sfo.registry import BENCHMARKS
from sfo.training.config import Experiment
from sfo.training.prepare import DataShape, build

SETTINGS = dict(hidden_channels=8, n_modes=6, n_layers=2)
MODELS = {
    "waves": ("allen_cahn", "sfo", SETTINGS),
    "waves-fno": ("allen_cahn", "fno", dict(hidden_channels=8, n_modes=8, n_layers=2)),
    "water": ("shallow_water", "sfo", SETTINGS),
    "light": ("maxwell", "sfo", {**SETTINGS, "n_modes": 4}),
}


def untrained(name):
    """A model with the weights of its seed, as if it were a run at the smoke scale."""
    benchmark, model, settings = MODELS[name]
    experiment = Experiment.of(
        benchmark, model, scale="smoke", preset="recommended", settings=settings
    )
    shape = DataShape.of_benchmark(experiment)
    source = solver_source(experiment, shape)

    def load():
        return LoadedModel(build(experiment, shape).eval(), shape, source, "Untrained.")

    return ListedModel(
        name, f"{model.upper()} {name}", benchmark, BENCHMARKS[benchmark].title, load
    )


@pytest.fixture(scope="session")
def own_run(tmp_path_factory):
    """The folder of a run on data of one's own: u1 is the input, u2 its square."""
    place = tmp_path_factory.mktemp("own")
    a = np.random.default_rng(0).normal(size=(20, 1, 32)).astype("float32").cumsum(-1)
    np.savez(place / "mine.npz", a=a, u=np.concatenate([a, a**2], 1))
    sfo.fit(place / "mine.npz", epochs=1, settings=SETTINGS, out=place / "mine")
    return place / "mine"


@pytest.fixture(scope="session")
def service(own_run):
    return Service({**{name: untrained(name) for name in MODELS}, **find_models([str(own_run)])})


@pytest.fixture(scope="session")
def address(service):
    """A server on the loopback address, in a thread."""
    pytest.importorskip("uvicorn", reason="needs the extra [play]")
    from sfo.play.server import listen, make_server

    listening = listen("127.0.0.1", 0)
    server = make_server(service, "127.0.0.1")
    thread = threading.Thread(target=server.run, kwargs=dict(sockets=[listening]), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
