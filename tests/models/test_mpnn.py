import pytest
import torch
from torch.nn import functional as F

from sfo.models import MPNN
from sfo.models.compiled import message_sums as module
from sfo.models.compiled.message_sums import MessageSums, message_sums_by_definition
from sfo.models.neighbourhood import Neighbourhood

GRAPHS = [
    ((9,), 3, "box", False),
    ((9,), 3, "box", True),
    ((7,), 3, "cross", True),
    ((5, 6), 1, "box", False),
    ((5, 6), 2, "box", True),
    ((6, 5), 2, "cross", False),
    ((3, 4, 5), 1, "box", True),
    ((4, 3, 3), 1, "box", False),
    ((4, 3, 3), 1, "cross", False),
]


def adjacency(shape, radius, neighbours, periodic):
    """For all pairs of points whether they are neighbours, and x_i − x_j in units of spacings."""
    index = torch.stack(torch.meshgrid(*map(torch.arange, shape), indexing="ij")).flatten(1).T
    apart = index[:, None] - index
    if periodic:
        n = torch.tensor(shape)
        apart = (apart + n // 2) % n - n // 2
        # The nearest image, which is not unique half a period away: out of reach here.
        assert radius <= (min(shape) - 1) // 2
    near = (apart.abs().amax(-1) <= radius) & apart.any(-1)
    if neighbours == "cross":
        near &= (apart != 0).sum(-1) == 1
    return near, apart


def by_adjacency(model, a, theta, shape, radius, neighbours, periodic):
    """The features f with a message for every pair of points, and the graph as a matrix."""
    near, apart = adjacency(shape, radius, neighbours, periodic)
    spacing = 1 / (torch.tensor(shape, dtype=a.dtype) - 1)
    index = torch.stack(torch.meshgrid(*map(torch.arange, shape), indexing="ij")).flatten(1).T
    u = a.flatten(2).mT
    batch, n, _ = u.shape
    x = (index * spacing).expand(batch, -1, -1)
    theta = theta.expand(batch, n, -1)

    def rows(v):
        return v[:, :, None].expand(-1, -1, n, -1)

    def columns(v):
        return v[:, None].expand(-1, n, -1, -1)

    def linear(part, *v):
        return F.silu(F.linear(torch.cat(v, -1), part.weight, part.bias))

    f = linear(model.encoder_out, linear(model.encoder, u, x, theta))
    for layer in model.layers:
        difference = [rows(u) - columns(u), (apart * spacing).expand(batch, -1, -1, -1)]
        m = linear(layer.message, rows(f), columns(f), *difference, rows(theta))
        m = linear(layer.message_out, m)
        mean = (near[..., None] * m).sum(2) / near.sum(1)[:, None]
        f = f + linear(layer.update_out, linear(layer.update, f, mean, theta))
        f = (f - f.mean(1, keepdim=True)) / (f.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
    return f.mT.unflatten(2, shape)


@pytest.mark.parametrize("graph", GRAPHS)
def test_features_are_those_of_the_adjacency_matrix(graph):
    shape, radius, neighbours, periodic = graph
    settings = dict(radius=radius, neighbours=neighbours, periodic=periodic)
    constants = (0.3, -2.0)
    model = MPNN(
        2, 3, len(shape), hidden_channels=6, n_layers=2, parameters=constants, **settings
    ).double()
    a = torch.randn(2, 2, *shape, dtype=torch.float64)
    theta = torch.tensor(constants, dtype=torch.float64)
    f = by_adjacency(model, a, theta, *graph)
    torch.testing.assert_close(model(a), model.decoder(f))


def message_inputs(graph, shape, batch=2, channels=3, dtype=torch.float64):
    a = torch.randn(*shape, batch, channels, dtype=dtype)
    weight, bias = torch.randn(channels + 1, channels, dtype=dtype).split([channels, 1])
    inputs = [a, graph.surround(torch.randn_like(a)).contiguous(), weight, bias[0]]
    return [v.clone().requires_grad_() for v in inputs]


def with_gradients(sums, inputs, edges):
    out = sums(*inputs, edges)
    generator = torch.Generator().manual_seed(3)
    direction = torch.randn(out.shape, generator=generator, dtype=torch.float64).to(out.dtype)
    return out, *torch.autograd.grad(out, inputs, direction)


def test_message_sums_have_the_right_derivatives():
    for periodic in (False, True):
        graph = Neighbourhood(2, 1, "box", periodic)
        inputs, edges = message_inputs(graph, (4, 5)), graph.edges((4, 5))
        truth = with_gradients(message_sums_by_definition, inputs, edges)
        torch.testing.assert_close(with_gradients(MessageSums.apply, inputs, edges), truth)
    graph = Neighbourhood(2, 1, "cross", False)
    edges = graph.edges((3, 2))
    small = message_inputs(graph, (3, 2))
    assert torch.autograd.gradgradcheck(lambda *v: MessageSums.apply(*v, edges), small)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("chunk", [1, 100, 2**17])
def test_kernels_sum_the_same_messages(graph, chunk, monkeypatch):
    """Float32 in compiled code against float64 in torch, however the edges are cut."""
    monkeypatch.setattr(module, "CHUNK", chunk)
    shape, radius, neighbours, periodic = graph
    graph = Neighbourhood(len(shape), radius, neighbours, periodic)
    edges = graph.edges(shape)
    single = message_inputs(graph, shape, channels=11, dtype=torch.float32)
    inputs = [v.detach().double().requires_grad_() for v in single]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    fast = with_gradients(MessageSums.apply, single, edges)
    for value, truth in zip(fast, with_gradients(MessageSums.apply, inputs, edges), strict=True):
        assert (value.double() - truth).abs().max() < 1e-5 * truth.abs().max()
    again = with_gradients(MessageSums.apply, single, edges)
    assert all(map(torch.equal, again, fast))


@pytest.mark.parametrize("graph", GRAPHS)
def test_pairs_are_the_adjacency_matrix(graph):
    """Each edge once; images of a periodic grid are the points that they repeat."""
    shape, radius, neighbours, periodic = graph
    grid = Neighbourhood(len(shape), radius, neighbours, periodic)
    n = torch.tensor(shape).prod()
    points = grid.surround(torch.arange(n, dtype=torch.float64).view(*shape, 1, 1)).flatten().long()
    receivers, senders = map(torch.from_numpy, grid.edges(shape).pairs)
    count = torch.zeros(n, n, dtype=torch.long)
    count.index_put_((receivers, points[senders]), torch.ones_like(receivers), accumulate=True)
    assert torch.equal(count, adjacency(*graph)[0].long())


def test_large_messages_saturate():
    """σ(x) is x far above 0 and 0 far below, as is its slope 1 and 0: nothing overflows."""
    graph = Neighbourhood(1, 1, "box", True)
    edges = graph.edges((3,))
    x = torch.tensor([-1e4, 1e4]).expand(3, 1, 2)
    inputs = [x, graph.surround(x), torch.eye(2), torch.zeros(2)]
    inputs = [v.clone().requires_grad_() for v in inputs]
    out, da, *_ = with_gradients(MessageSums.apply, inputs, edges)
    assert torch.equal(out, torch.tensor([0, 4e4]).expand(3, 1, 2))
    assert (da[..., 0] == 0).all()
    assert (da[..., 1] != 0).all()


def test_neighbours_are_counted():
    """Inside 26 or 6 on three axes; at a corner 7 or 3, unless the grid is periodic."""
    f = torch.zeros(4, 4, 4, 1, 1)
    for neighbours, periodic, inside, corner in [
        ("box", False, 26, 7),
        ("cross", False, 6, 3),
        ("box", True, 26, 26),
    ]:
        degrees = Neighbourhood(3, 1, neighbours, periodic).edges((4, 4, 4)).degrees(f)[..., 0, 0]
        assert (degrees[1, 1, 1], degrees[0, 0, 0]) == (inside, corner)


@pytest.mark.parametrize(
    ("n_dim", "constants", "count"),
    [(1, (1e-4, 5.0), 624_649), (1, (), 621_321), (2, (), 622_217)],
)
def test_autoregressive_parameters_as_published(n_dim, constants, count):
    """PDENNEval's for Allen–Cahn, Diffusion–Sorption and Shallow Water."""
    model = MPNN(10, 101, n_dim, window=10, parameters=constants)
    assert sum(p.numel() for p in model.parameters()) == count


def test_trajectory_starts_where_the_input_says():
    """u(0) is the input channel of the field, or 0; later frames differ by t times a rate."""
    model = MPNN(3, 12, hidden_channels=8, n_layers=1, start=(2, None, 0)).double()
    a = torch.randn(2, 3, 16, dtype=torch.float64)
    u = model(a).unflatten(1, (3, 4))
    assert torch.equal(u[:, :, 0], torch.stack([a[:, 2], 0 * a[:, 0], a[:, 0]], dim=1))
    plain = MPNN(3, 12, hidden_channels=8, n_layers=1).double()
    plain.load_state_dict(model.state_dict(), check_options=False)
    rate = plain(a).unflatten(1, (3, 4))
    torch.testing.assert_close(u[:, :, 2] - u[:, :, 0], 2 / 3 * rate[:, :, 2])


def test_autoregressive_model_is_its_step_repeated():
    """Three windows of 4 frames of 2 fields, cut at 11; the given frames are kept."""
    model = MPNN(8, 22, 2, hidden_channels=20, n_layers=1, window=4, parameters=(0.5,)).double()
    a = torch.randn(2, 8, 5, 6, dtype=torch.float64)
    given = a.unflatten(1, (2, 4))
    second = model.advance(given, 3 / 10)
    third = model.advance(second, 7 / 10)
    frames = model(a).unflatten(1, (2, 11))
    torch.testing.assert_close(frames, torch.cat([given, second, third], 2)[:, :, :11])


def test_a_step_moves_on_from_the_latest_frame():
    """u(t₀ + k Δt) = u(t₀) + k Δt · rate, and the rate knows the time."""
    graph = ((9,), 3, "box", False)
    model = MPNN(4, 11, hidden_channels=20, n_layers=1, window=4).double()
    a = torch.randn(2, 4, 9, dtype=torch.float64)
    f = by_adjacency(model, a, torch.tensor([0.3], dtype=torch.float64), *graph)
    stride = model.decoder.first.stride[0]
    pieces = f.mT.unfold(2, model.decoder.first.kernel_size[0], stride)
    first = F.silu(pieces @ model.decoder.first.weight[:, 0].T + model.decoder.first.bias)
    pieces = first.unfold(2, 14, 1).flatten(3)
    rate = pieces @ model.decoder.second.weight.flatten() + model.decoder.second.bias
    elapsed = torch.arange(1, 5)[:, None] / 10
    truth = a[:, -1:] + elapsed * rate.mT
    torch.testing.assert_close(model.advance(a[:, None], 0.3)[:, 0], truth)


def test_grids_with_too_few_points_are_refused():
    with pytest.raises(ValueError, match="every axis must have at least 7 points, got the grid"):
        MPNN(1, 1, hidden_channels=4)(torch.zeros(1, 1, 6))
