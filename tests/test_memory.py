"""A model that does not fit is refused before there is a tensor of it."""

import resource

import pytest
import torch
from torch import nn

from sfo import memory
from sfo.memory import build_within_memory, check_training_fits, weight_bytes


def peak():
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def layers(width):
    """The first layer alone would fit, all of them would not."""
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(10**4, width), nn.Linear(width, width))


def test_the_whole_size_is_known_before_the_first_layer_is_made():
    before = peak()
    with pytest.raises(MemoryError, match=r"^It takes 4\.0 TB, and [\d.]+ GB are free\.$"):
        build_within_memory(lambda: layers(10**6))
    assert peak() - before < 100


def test_large_models_that_fit_have_the_same_weights(monkeypatch):
    plain = layers(50).state_dict()
    monkeypatch.setattr(memory, "LARGE_TENSOR", 1)
    checked = build_within_memory(lambda: layers(50)).state_dict()
    assert all(torch.equal(plain[k], checked[k]) for k in plain)


def test_a_constructor_that_reads_numbers_is_watched_tensor_by_tensor(monkeypatch):
    """It cannot be built without numbers, so that the tensor that does not fit is refused."""

    def make():
        assert float(torch.ones(9).sum()) == 9.0
        return layers(9)

    monkeypatch.setattr(memory, "LARGE_TENSOR", 1)
    assert weight_bytes(build_within_memory(make)) == 4 * (9 * 10**4 + 9 + 81 + 9)
    monkeypatch.setattr(memory, "free_memory", lambda: 100.0)
    with pytest.raises(MemoryError, match="It takes"):
        build_within_memory(make)


def test_room_for_gradients_and_their_means(monkeypatch):
    model = layers(9)
    monkeypatch.setattr(memory, "free_memory", lambda: 2.0 * weight_bytes(model))
    check_training_fits(model)
    monkeypatch.setattr(memory, "free_memory", lambda: 2.0 * weight_bytes(model) - 1)
    with pytest.raises(ValueError, match="does not fit into memory for training"):
        check_training_fits(model)


def test_free_memory_is_less_than_the_machine_has():
    """In bytes: more than this process has, less than a petabyte, where the system tells."""
    free = memory.free_memory()
    assert 2**20 < free < 1e15 or free == float("inf")
