"""One check of the input for all solvers: it names the argument, the rule and the place."""

import dataclasses
import inspect
import math

import numpy as np
import pytest
import torch

from sfo import pdes
from sfo.pdes.problem import NotSolved, check_problem

FLAT = torch.zeros(1, 1, 8)
# Every solver with fields that it accepts.
SOLVERS = {
    pdes.AllenCahn(): torch.zeros(2, 1, 8),
    pdes.CahnHilliard(): torch.zeros(2, 1, 8),
    pdes.DiffusionReaction(): torch.zeros(2, 1, 8),
    pdes.Burgers(): torch.zeros(2, 1, 8),
    pdes.KuramotoSivashinsky(): torch.zeros(2, 1, 8),
    pdes.NavierStokes(): torch.zeros(2, 1, 4, 4),
    pdes.Float32DiffusionReaction(): torch.zeros(2, 1, 8),
    pdes.DiffusionSorption(): torch.zeros(2, 1, 8),
    pdes.DefaultRK45Sorption(): torch.zeros(2, 1, 8),
    pdes.ShallowWater(): torch.ones(2, 1, 4, 4),
    pdes.RadialDamBreak(): torch.ones(2, 1, 4, 4),
    pdes.Maxwell(): torch.zeros(2, 6, 4, 4, 4),
}


@pytest.mark.parametrize(
    ("initial", "times", "message"),
    [
        (torch.zeros(8), [0, 1], r"shape \(sample, 1, n\), got \(8,\)"),
        (torch.zeros(2, 3, 8), [0, 1], r"shape \(sample, 1, n\), got \(2, 3, 8\)"),
        (torch.zeros(2, 1, 0), [0, 1], r"at least 1 points?|shape \(sample, 1, n\)"),
        (torch.zeros(0, 1, 8), [0, 1], r"at least one sample, got the shape \(0, 1, 8\)"),
        (FLAT.cfloat(), [0, 1], "must be real, got torch.complex64"),
        (torch.tensor([[[0.0]], [[math.nan]]]), [0, 1], r"got nan in sample 1, .* point \(0,\)\."),
        (FLAT, [0, 1, 1], r"increasing, .* got \[0\.0, 1\.0, 1\.0\]"),
        (FLAT, [0, math.nan], "increasing"),
        (FLAT, [0, math.inf], "finite"),
        (FLAT, [], "increasing"),
        (FLAT, [[0, 1]], "increasing"),
    ],
)
def test_bad_problems_say_what_is_wrong(initial, times, message):
    with pytest.raises(ValueError, match=message):
        check_problem(initial, times, channels=1)


@pytest.mark.parametrize("pde", SOLVERS, ids=lambda pde: type(pde).__name__)
def test_every_solver_refuses_what_is_not_finite_or_empty(pde):
    """The first bad number is named by its sample and place, before anything is computed."""
    good = SOLVERS[pde]
    step = getattr(pde, "time_step", 0.01)
    assert pde.solve(good, [0.0, step]).isfinite().all()
    for bad in (math.nan, math.inf, -math.inf):
        fields = good.clone()
        fields[(1, 0, *[2] * (good.ndim - 2))] = bad
        with pytest.raises(ValueError, match=rf"{bad} in sample 1, channel 0, at .* \(2,"):
            pde.solve(fields, [0.0, step])
    with pytest.raises(ValueError, match="at least one sample"):
        pde.solve(good[:0], [0.0, step])
    for times in ([0.0, math.inf], [0.0, math.nan], [step, 0.0], []):
        with pytest.raises(ValueError, match="`times` must be one row of increasing, finite"):
            pde.solve(good, times)


class Odd:
    """An object of others."""


BAD_KINDS = {
    "text": ("now", "must be real numbers, got 'now'"),
    "nothing": (None, "must be real numbers, got None"),
    "an object": (Odd(), "must be real numbers, got .*Odd"),
    "a dictionary": ({0: 1.0}, r"must be real numbers, got \{0: 1.0\}"),
    "a generator": ((t for t in (0.0, 1.0)), "must be real numbers, got <generator"),
    "texts": (["0", "1"], r"must be real numbers, got \['0', '1'\]"),
    "rows of several lengths": ([[0.0], [1.0, 2.0]], r"must be real numbers, got \[\[0.0\]"),
    "no numbers among them": ([0.0, None], r"must be real numbers, got \[0.0, None\]"),
    "too large for float": ([0, 10**400], "must be real numbers, got"),
    "dates": (np.array(["2020-01-01", "2020-01-02"], "M8[s]"), "array of datetime64"),
    "spans": (np.array([0, 1], "m8[s]"), "array of timedelta64"),
    "objects": (np.array([0.0, None]), "an array of object"),
    "complex numbers": ([0.0, 1j], "must be real, got complex128"),
    "a complex array": (np.array([0, 0.01 + 1j]), "must be real, got complex128"),
    "a complex tensor": (torch.tensor([0, 0.01 + 1j]), "must be real, got torch.complex64"),
    "masked": (np.ma.masked_array([0.0, 0.01], mask=[0, 1]), "must have no masked values"),
    "sparse": (torch.zeros(2).to_sparse(), "must be a dense tensor with numbers"),
    "meta": (torch.zeros(2, device="meta"), "must be a dense tensor with numbers"),
    "a number": (1.0, "must be one row|must have the shape"),
}
"""What is no array of numbers, and what is said of it."""


@pytest.mark.parametrize("name", BAD_KINDS)
@pytest.mark.parametrize("pde", SOLVERS, ids=lambda pde: type(pde).__name__)
def test_every_solver_says_what_is_no_array_of_numbers(pde, name):
    """It ended in a TypeError from inside; imaginary parts and masks were silently dropped."""
    bad, message = BAD_KINDS[name]
    with pytest.raises(ValueError, match=f"`initial` .*(?:{message})"):
        pde.solve(bad, [0.0, getattr(pde, "time_step", 0.01)])
    with pytest.raises(ValueError, match=f"`times` .*(?:{message})"):
        pde.solve(SOLVERS[pde], bad)


def test_darcy_says_what_is_no_array_of_numbers():
    for bad, message in BAD_KINDS.values():
        with pytest.raises(ValueError, match=f"`coefficient` .*(?:{message})"):
            pdes.Darcy().solve(bad)
        if bad is None:  # Stands for the equation's own.
            continue
        with pytest.raises(ValueError, match=f"`force` .*(?:{message})"):
            pdes.Darcy().solve(torch.ones(1, 1, 4), bad)


@pytest.mark.parametrize("pde", SOLVERS, ids=lambda pde: type(pde).__name__)
def test_every_solver_takes_numbers_however_they_lie(pde):
    """Lists, integers, other byte orders, read-only and reversed memory: the same solution."""
    good = SOLVERS[pde] + torch.linspace(0, 0.5, SOLVERS[pde].shape[-1]).double()
    step = getattr(pde, "time_step", 0.01)
    truth = pde.solve(good, [0.0, step])
    array = good.numpy()
    for fields in (
        array.tolist(),
        array.astype(">f8"),
        array[..., ::-1].copy()[..., ::-1],
        np.broadcast_to(array, array.shape),
        np.ma.masked_array(array),
        array.astype(np.longdouble),
        good.clone().requires_grad_(),
    ):
        assert pde.solve(fields, [0.0, step]).equal(truth)
    late = np.array([step, 0.0])[::-1]
    for times in (
        late,
        late.astype(">f8"),
        (0, step),
        [0, torch.tensor(step, dtype=torch.float64)],
    ):
        assert pde.solve(good, times).equal(truth)


BAD_OPTIONS = ("x", math.nan, 0, -1.0, [1], True, 1j, torch.zeros(3))
OPTIONS = [
    (pde, name)
    for pde in SOLVERS
    for name in ("max_step", "rtol", "atol", "crop", "sources", "boundary")
    if name in inspect.signature(pde.solve).parameters
]


@pytest.mark.parametrize(
    ("pde", "name"), OPTIONS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_options_of_solvers_are_of_their_kind(pde, name):
    """Text, lists and tensors ended in TypeErrors."""
    step = getattr(pde, "time_step", 0.01)
    for bad in BAD_OPTIONS:
        if name == "crop" and type(bad) in (int, bool):  # 0 crops nothing.
            continue
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            pde.solve(SOLVERS[pde], [0.0, step], **{name: bad})


CONSTANTS = [
    (kind, field.name)
    for kind in (*map(type, SOLVERS), pdes.Darcy)
    for field in dataclasses.fields(kind)
    if isinstance(getattr(kind(), field.name), float) and field.name != "max_step"
]


@pytest.mark.parametrize(
    ("kind", "name"), CONSTANTS, ids=lambda value: getattr(value, "__name__", value)
)
def test_no_equation_has_constants_that_are_not_finite(kind, name):
    """Sorption answered with NaN, and the dam divided by a time step of 0 and by infinity."""
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match=rf"`{name}` must be"):
            kind(**{name: bad})
    for bad in ("1", None, [1.0], {}, 1j, True, torch.ones(2), np.float32(math.nan)):
        with pytest.raises(ValueError, match=rf"`{name}` must be"):
            kind(**{name: bad})


def test_no_equation_has_a_box_without_a_size():
    for kind in (*map(type, SOLVERS), pdes.Darcy):
        if hasattr(kind(), "upper"):
            with pytest.raises(ValueError, match="`lower` must be below `upper`"):
                kind(upper=kind().lower)


@pytest.mark.parametrize(
    ("pde", "initial", "times"),
    [
        (pdes.DiffusionSorption(), torch.full((1, 1, 8), 0.5), [0.0, 1e-300]),
        (pdes.DiffusionSorption(left=1e300), torch.full((1, 1, 8), 0.5), [0.0, 0.01]),
        (pdes.DefaultRK45Sorption(), torch.full((1, 1, 8), -1e5), [0.0, 0.01]),
        (pdes.ShallowWater(), 1e300 * torch.rand(1, 1, 4, 4, dtype=torch.float64), [0.0, 1e-300]),
        (pdes.ShallowWater(gravity=1e300), 1 + torch.rand(1, 1, 4, 4), [0.0, 0.01]),
    ],
    ids=["sorption, soon", "sorption, left", "sorption, RK45", "deep water", "heavy water"],
)
def test_a_solver_that_gives_up_says_so(pde, initial, times):
    """NaN, a traceback of `sfo generate`, and steps without an end."""
    with pytest.raises(NotSolved, match=r"ample 0 |would take .* steps"):
        pde.solve(initial, times)
    assert issubclass(NotSolved, ValueError)  # Which commands print in one sentence.
