"""What every registered benchmark promises."""

import pytest
import torch

from sfo.data import load_benchmark
from sfo.data.benchmarks import Scale, option_names
from sfo.registry import BENCHMARKS

PUBLISHED = {"diffusion_reaction_f32", "diffusion_sorption_rk45", "shallow_water_rdb"}


def tiny(name):
    """A few samples of the smoke scale, and shorter where solving takes long."""
    kind = BENCHMARKS[name]
    scale = kind.scale("smoke")
    return kind, Scale(samples=3, n=scale.n, frames=3, stored=scale.stored)


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_samples_differ_and_depend_on_seed_and_index_alone(name):
    kind, scale = tiny(name)
    both = kind.simulate(0, [0, 1], scale)
    again = kind.simulate(0, [1], scale)
    torch.testing.assert_close(both.values[1], again.values[0], rtol=1e-9, atol=1e-12)
    assert torch.isfinite(both.values).all()
    if name != "shallow_water_rdb":
        assert not torch.equal(both.values[0], both.values[1])
    other = kind.simulate(7, [1], scale)
    if name not in PUBLISHED:
        assert not torch.equal(other.values[0], again.values[0])


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_pairs_begin_with_their_input(name, tmp_path):
    """The solution holds the input's frames, field by field."""
    kind = BENCHMARKS[name]
    p = load_benchmark(name, "smoke", "all", samples=3, folder=tmp_path, workers=1)
    again = load_benchmark(name, "smoke", "all", samples=3, folder=tmp_path, workers=1)
    assert torch.equal(again.u, p.u), "the second call must find the file of the first"
    fields = p.trajectory()
    channel = 0
    for field in kind.inputs:
        if field in kind.names:
            for step in range(kind.n_input):
                assert torch.equal(p.a[:, channel], fields[:, step, kind.names.index(field)])
                channel += 1
        else:
            channel += 1
    assert channel == p.a.shape[1]
    assert p.benchmark == name


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_options_are_refused_by_name(name):
    kind = BENCHMARKS[name]
    assert len(set(option_names(kind))) == len(option_names(kind))
    with pytest.raises(ValueError, match=f"Unknown option 'colour' of {name}; known: "):
        kind.with_options(colour=1)
