import pytest

from sfo.registry import BASES, MODELS, Registry


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(
        ValueError, match=r"Unknown basis 'ubs'; known: .*usb.* Did you mean 'usb'\?"
    ):
        BASES["ubs"]


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="model 'sfo' is registered already"):
        MODELS.register("sfo")(MODELS["fno"])


def test_what_is_defined_again_takes_its_own_place():
    """As a cell of a notebook that is run twice."""
    registry = Registry("colour")
    for value in (1, 2):

        @registry.register("red")
        def red(value=value):
            return value

    assert registry["red"]() == 2
