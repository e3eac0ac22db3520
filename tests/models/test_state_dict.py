"""Weights carry what they rely on, and are refused where they would mean something else."""

import io

import pytest
import torch
from safetensors.torch import load, save

from sfo.models import SFO
from sfo.models.blocks import with_current_names
from sfo.training import checkpoint

DENSE = dict(n_modes=4, hidden_channels=8, n_layers=2)
FACTORED = dict(DENSE, mixing="factored")


def model(**settings):
    torch.manual_seed(0)
    return SFO(1, 1, 1, **{**DENSE, **settings})


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def through_safetensors(state):
    return load(save(dict(state)))


@pytest.mark.parametrize("carry", [dict, through_a_file, through_safetensors])
@pytest.mark.parametrize(
    "other",
    [
        dict(boundary="zero"),
        dict(basis="chebyshev"),
        dict(product="correlation"),
        dict(support="two_sided"),
        dict(gain="unit"),
    ],
)
def test_other_options_are_refused(other, carry):
    """They change the output by as much as 43 %; with a flag they are taken all the same."""
    first, second = model(), model(**other)
    state = carry(first.state_dict())
    (name,) = other
    with pytest.raises(ValueError, match=f"trained with {name}=.*check_options=False"):
        second.load_state_dict(state)
    second.load_state_dict(state, check_options=False)
    a = torch.randn(2, 1, 32)
    assert not torch.allclose(first.eval()(a), second.eval()(a), rtol=1e-3)
    with pytest.raises(ValueError, match="trained with"):  # The flag is for one call.
        second.load_state_dict(state)


@pytest.mark.parametrize("settings", [{}, FACTORED, dict(FACTORED, index="separable")])
def test_the_training_grid_travels_with_the_weights(settings):
    """On a finer grid the modes are scaled from the grid that the weights were trained on."""
    first, second = model(**settings), model(**settings)
    first.train()(torch.randn(1, 1, 32))
    second.load_state_dict(first.state_dict())
    a = torch.randn(2, 1, 64)
    torch.testing.assert_close(first.eval()(a), second.eval()(a), rtol=0, atol=0)
    elsewhere = model(**settings)
    elsewhere.train()(a)
    elsewhere.load_state_dict(first.state_dict())
    torch.testing.assert_close(elsewhere.eval()(a), first(a), rtol=0, atol=0)


def test_weights_of_version_0_3_are_taken():
    """They hold the training grid alone."""
    first, second = model(), model()
    first.train()(torch.randn(1, 1, 32))
    old = {**first.state_dict(), "_extra_state": torch.tensor([32])}
    second.load_state_dict(old)
    a = torch.randn(2, 1, 64)
    torch.testing.assert_close(second.eval()(a), first.eval()(a), rtol=0, atol=0)


@pytest.mark.parametrize("prefix", ["", "model."])
def test_the_former_name_of_the_lifts_hidden_layers_is_taken(prefix):
    """Also by a model inside another, such as the average of weights."""
    first, second = model(lift_channels=5), model(lift_channels=5)
    with torch.no_grad():
        first.lift.mlp[0].weight.add_(1.0)
    outer = second if not prefix else torch.nn.ModuleDict({"model": second})
    state = {prefix + name: weight for name, weight in first.state_dict().items()}
    old = {name.replace("lift.mlp.", "lift.bend."): weight for name, weight in state.items()}
    assert old.keys() != state.keys()
    outer.load_state_dict(old)
    torch.testing.assert_close(second.state_dict(), first.state_dict(), rtol=0, atol=0)
    assert with_current_names(old) == state


def test_a_refused_model_keeps_its_weights():
    second = model(boundary="zero")
    before = {name: weight.clone() for name, weight in second.state_dict().items()}
    with pytest.raises(ValueError, match="boundary"):
        second.load_state_dict({k: v for k, v in model().state_dict().items()})
    assert all(torch.equal(weight, before[name]) for name, weight in second.state_dict().items())


def test_transfer_and_transform_may_differ():
    model(transfer="restrict").load_state_dict(model().state_dict())
    model(transform="matmul").load_state_dict(model().state_dict())


def test_a_checkpoint_keeps_what_they_say(tmp_path):
    state = dict(model=model().state_dict())
    found = checkpoint.load(checkpoint.save(state, tmp_path, step=1))
    with pytest.raises(ValueError, match="basis='usb', but this model has basis='chebyshev'"):
        model(basis="chebyshev").load_state_dict(found["model"])
    model().load_state_dict(found["model"])


@pytest.mark.parametrize("change", [torch.Tensor.half, torch.Tensor.double, lambda w: (w + w) / 2])
def test_converted_and_averaged_weights_say_the_same(change):
    """What is done to all tensors of a state dict leaves the options and the training grid."""
    first = model()
    first.train()(torch.randn(1, 1, 32))
    state = {name: change(weight) for name, weight in first.state_dict().items()}
    second = model()
    second.load_state_dict(state)
    assert second.modes.train_shape == (32,)
    with pytest.raises(ValueError, match="boundary='circular', but this model has boundary='zero'"):
        model(boundary="zero").load_state_dict(state)


def test_options_that_cannot_be_read_are_refused_in_a_sentence():
    state = model().state_dict()
    for damaged in (state["_extra_state"][:-1], state["_extra_state"] / 3):
        with pytest.raises(ValueError, match="do not say what options they were trained with"):
            model().load_state_dict({**state, "_extra_state": damaged})
