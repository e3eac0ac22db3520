import pytest

from sfo.registry import BASES, MODELS


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(
        ValueError, match=r"Unknown basis 'ubs'; known: .*usb.* Did you mean 'usb'\?"
    ):
        BASES["ubs"]


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="model 'sfo' is registered already"):
        MODELS.register("sfo")
