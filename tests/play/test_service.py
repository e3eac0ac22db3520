"""The answers of the playground, without HTTP."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import sfo
from sfo.grid import Grid
from sfo.play import sources
from sfo.play.cases import Case, refine
from sfo.play.kernels import mode_sizes
from sfo.play.service import ResultCache, Service, UnknownModel
from sfo.play.shown import find_models, solver_source
from sfo.play.sources import FIRST_UNSEEN_SEED
from sfo.registry import BENCHMARKS
from sfo.training.config import Experiment
from sfo.training.prepare import DataShape


def test_the_truth_is_the_benchmarks_own_sample(service):
    """On every grid of the slider, the solver's solution of the same unseen sample."""
    kind = BENCHMARKS["allen_cahn"]
    whole = kind.simulate(FIRST_UNSEEN_SEED + 5, [0], replace(kind.scale("smoke"), stored=1))
    grids = service.about("waves")["grids"]
    assert grids == [[8], [16], [32], [64], [128], [256]]
    for number, (points,) in enumerate(grids):
        found = service.solve("waves", Case(5), number).fields
        expected = whole.subsample(256 // points).values[0].transpose(0, 1).float()
        assert torch.equal(found, expected)


@pytest.mark.parametrize("name", ["waves", "water", "light"])
def test_the_prediction_is_the_models_for_the_state_on_screen(service, name):
    parts = service.parts(name)
    state = service.state(name, Case(2)).fields.float()
    with torch.no_grad():
        expected = parts.model(state[None])[0]
    found = service.predict(name, Case(2)).fields
    assert found.shape[:2] == (len(parts.shape.names), len(parts.shape.times))
    torch.testing.assert_close(found.flatten(0, 1), expected)


@pytest.mark.parametrize("name", ["waves", "water"])
def test_a_drawn_copy_of_a_sample_is_that_sample(service, name):
    """In 1D to what 64 points can hold of waves; at the points themselves always."""
    state = service.state(name, Case(1)).fields.float()
    case = service.drawn(name, state.numpy().tobytes())
    again = service.state(name, case).fields.float()
    if name == "waves":
        torch.testing.assert_close(again, state)
        torch.testing.assert_close(
            service.solve(name, case).fields, service.solve(name, Case(1)).fields, atol=2e-3, rtol=0
        )
    torch.testing.assert_close(again.mean(), state.mean(), rtol=0.02, atol=0.01)


def test_models_of_one_benchmark_share_a_solution(service):
    service.solve("waves", Case(7))
    kept = service.cache.size
    assert service.solve("waves-fno", Case(7)).meta["milliseconds"] > 0
    assert service.cache.size == kept


def test_light_cannot_be_drawn_but_chosen(service):
    """Its inputs are two frames of a driven box, so the solution begins with them."""
    about = service.about("light")
    assert "cannot be drawn" in about["why_not"]
    truth, state = service.solve("light", Case(0)).fields, service.state("light", Case(0)).fields
    assert torch.equal(truth[:, :2].flatten(0, 1), state)
    body = np.zeros(about["state_shape"], "<f4").tobytes()
    with pytest.raises(ValueError, match="cannot be drawn"):
        service.predict("light", service.drawn("light", body))


def test_own_data_are_compared_with_stored_samples(service):
    """The state of a sample is compared with its solution, a drawn one with the nearest one's."""
    about = service.about("mine")
    assert (about["truth"], about["samples"]) == ("stored", 2)
    state = service.state("mine", Case(1)).fields.float()
    truth = service.solve("mine", Case(1))
    torch.testing.assert_close(truth.fields, torch.stack([state, state**2]))
    assert truth.meta["milliseconds"] is None
    near = service.solve("mine", service.drawn("mine", (1.01 * state).numpy().tobytes()))
    assert torch.equal(near.fields, truth.fields)
    assert "the nearest one; its input is 1% away" in near.meta["words"]
    with pytest.raises(ValueError, match=r"`seed` must be in 0..1, got 2"):
        service.numbered("mine", 2)


def test_own_data_that_are_gone_leave_the_prediction(own_run, tmp_path):
    """Neither solver nor samples: the state is zero or drawn, and the page says so."""
    import shutil

    shutil.copytree(own_run, tmp_path / "copy")
    (tmp_path / "copy" / "sources.json").unlink()
    alone = Service(find_models([str(tmp_path / "copy")]))
    assert alone.about("copy")["truth"] == "none"
    assert alone.solve("copy", Case(0)).fields is None
    run = sfo.load_run(own_run)
    expected = run.predict(np.zeros((1, 32), "float32"))
    np.testing.assert_allclose(alone.predict("copy", Case(0)).fields[:, 0], expected, atol=1e-6)


def test_kernels_are_those_of_the_model(service):
    """κ of the page against `spatial`, and Parseval: the sizes of all modes are those of Θ."""
    for name in ("waves", "water", "light"):
        parts = service.parts(name)
        view = service.kernel(name)
        kernel = parts.model.kernels[1]
        whole = kernel.spatial(parts.shape.grid.shape)
        axes = tuple(range(2, whole.ndim))
        whole = torch.fft.fftshift(whole, dim=axes)
        into, out = map(int, view.meta["titles"][1][0].split(" → "))
        shown = whole[out, into]
        while shown.ndim > 2:
            shown = shown[..., shown.shape[-1] // 2]
        torch.testing.assert_close(view.fields[1, 0], shown.float())
        squares = sum(size**2 for size in mode_sizes(kernel))
        assert squares == pytest.approx(float(kernel.theta.detach().square().sum()), rel=1e-5)


def test_a_model_without_modes_has_no_kernel_view(service):
    assert service.about("waves-fno")["kernels"] is False
    with pytest.raises(ValueError, match="those of SFO are"):
        service.kernel("waves-fno")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "must be 1 × 64 numbers of float32, 256 bytes, got 0"),
        (b"\0" * 260, "256 bytes, got 260"),
        (np.full(64, np.nan, "<f4").tobytes(), "must be finite"),
        (np.full(64, np.inf, "<f4").tobytes(), "must be finite"),
    ],
)
def test_bad_states_are_refused(service, body, message):
    with pytest.raises(ValueError, match=message):
        service.drawn("waves", body)


def test_unknown_names_list_the_known(service):
    with pytest.raises(UnknownModel, match="known: waves, waves-fno, water"):
        service.predict("../../etc/passwd", Case(0))
    with pytest.raises(ValueError, match=r"`grid` must be in 0..5, got 6"):
        service.predict("waves", Case(0), 6)


def test_what_cannot_be_shown_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no run's folder and no pretrained model"):
        find_models(["nowhere"])
    with pytest.raises(ValueError, match="not a finished run"):
        find_models([str(tmp_path)])


def test_runs_of_one_name_get_names_of_their_own(own_run):
    assert list(find_models([str(own_run), str(own_run.parent)])) == ["mine", "mine-2"]


def test_a_solver_that_cannot_says_so(service):
    """Water of negative depth is refused in the solver's words, without advice to programmers."""
    body = np.full(service.about("water")["state_shape"], -1.0, "<f4").tobytes()
    with pytest.raises(ValueError, match=r"Shallow Water cannot solve this state; .* `initial`"):
        service.solve("water", service.drawn("water", body))
    body = np.full(service.about("waves")["state_shape"], 1e10, "<f4").tobytes()
    with pytest.raises(ValueError, match="draw a smaller or a smoother one") as error:
        service.solve("waves", service.drawn("waves", body))
    assert "max_step" not in str(error.value)


def test_refined_waves_are_the_same_waves():
    coarse = Grid((16, 16), (0.0, 0.0), (1.0, 1.0))
    fine = Grid((64, 64), (0.0, 0.0), (1.0, 1.0))

    def wave(grid):
        x, y = grid.mesh()
        return torch.cos(2 * torch.pi * (3 * x - 2 * y))[None]

    torch.testing.assert_close(refine(wave(coarse), coarse, fine), wave(fine))


def test_refined_planes_are_the_same_planes_inside():
    """Linear interpolation is exact for what is linear, on cell centres that are offset too."""
    fine = Grid((32,), (0.0,), (2.0,), offset=0.5, periodic=False)
    coarse = fine.subsample(4)
    x, inside = fine.coordinates()[0], slice(0, 29)
    made = refine(3 * coarse.coordinates()[0][None] + 1, coarse, fine)[0]
    torch.testing.assert_close(made[inside], 3 * x[inside] + 1)
    assert float(made[-1]) == pytest.approx(float(3 * x[28] + 1))


def test_memory_forgets_what_was_used_longest_ago():
    memory = ResultCache(most=10)
    for key in "abc":
        memory.get((key,), lambda key=key: key, lambda _: 4)
    made = [memory.get((key,), lambda: "new", lambda _: 4) for key in "cb"]
    assert (made, memory.size) == (["c", "b"], 8)
    assert memory.get(("a",), lambda: "new", lambda _: 40) == "new"
    assert memory.size == 8, "what never fits is not kept"
    small = ResultCache(most=1000, items=2)
    for key in "abc":
        small.get((key,), lambda key=key: key, lambda _: 1)
    assert [small.get((key,), lambda: "new", lambda _: 1) for key in "ca"] == ["c", "new"]
    assert small.size == 2


def test_a_pretrained_model_is_near_the_solver_on_a_state_of_no_training_set():
    """Also on a finer grid than its own."""
    service = Service(find_models(["allen_cahn"]))
    about = service.about("allen_cahn")
    for grid in (about["home"], about["home"] + 1):
        guess, truth = (
            ask("allen_cahn", Case(3), grid).fields for ask in (service.predict, service.solve)
        )
        assert float((guess - truth).norm() / truth.norm()) < 0.02
    assert set(find_models([])) >= {"allen_cahn"}


def test_a_file_that_is_not_the_runs_is_refused_at_once(own_run, tmp_path):
    np.savez(tmp_path / "other.npz", a=np.ones((20, 1, 32), "f4"), u=np.ones((20, 2, 32), "f4"))
    with pytest.raises(ValueError, match="data"):
        find_models([str(own_run)], tmp_path / "other.npz")
    with pytest.raises(ValueError, match="gone"):
        find_models([str(own_run)], tmp_path / "nowhere.npz")


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_every_benchmark_has_states_for_its_model(name):
    """Darcy, whose input is static, was taken for one with no frame at all and not shown."""
    experiment = Experiment.of(name, preset="recommended", scale="smoke")
    shape = DataShape.of_benchmark(experiment)
    source = solver_source(experiment, shape)
    assert source.kind == "solver"
    assert source.sample(0).shape == (shape.in_channels, *source.fine.shape)
    assert source.equation


def test_a_drawn_permeability_is_solved():
    """The whole way of a steady problem: what is drawn is what Darcy's solver gets."""
    experiment = Experiment.of("darcy", preset="recommended", scale="smoke")
    shape = DataShape.of_benchmark(experiment)
    source = solver_source(experiment, shape)
    drawn = np.full((1, *shape.grid.shape), 5.0, np.float32)
    pressure = source.truth(Case(drawn=drawn)).values
    expected = BENCHMARKS["darcy"].pde.solve(torch.full((1, 1, *source.fine.shape), 5.0))
    torch.testing.assert_close(pressure[0], expected[0].float())


def test_the_solvers_first_call_which_compiles_is_not_timed(monkeypatch):
    """Diffusion–Sorption's 0.1 s were 7 s at first, and the operator 59 times as fast."""
    experiment = Experiment.of("allen_cahn", preset="recommended", scale="smoke")
    source = solver_source(experiment, DataShape.of_benchmark(experiment))
    solve, seconds, clock = type(source.benchmark).solve_inputs, [7.0, 0.1, 0.2], [0.0]

    def compiles_first(self, inputs, times):
        clock[0] += seconds.pop(0)
        return solve(self, inputs, times)

    monkeypatch.setattr(type(source.benchmark), "solve_inputs", compiles_first)
    monkeypatch.setattr(sources.time, "perf_counter", lambda: clock[0])
    found = [source.truth(Case(seed)).milliseconds for seed in (1, 2)]
    assert found == pytest.approx([100, 200])
