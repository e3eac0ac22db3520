"""Pictures: what is drawn is what the data hold, in the right place and colours."""

import numpy as np
import pytest
import torch
from matplotlib.collections import QuadMesh
from matplotlib.image import imread

from sfo.data.pairs import pairs
from sfo.data.trajectories import Trajectories
from sfo.grid import Grid
from sfo.plot.fields import picture, show_benchmark


def random_data(n_dim, channels=1, static=0, frames=11, samples=3):
    generator = torch.Generator().manual_seed(0)
    shape = tuple(range(6, 6 + n_dim))
    values = torch.randn(samples, frames, channels, *shape, generator=generator)
    fixed = torch.rand(samples, static, *shape, generator=generator) if static else None
    grid = Grid(shape, (-1.0,) * n_dim, (2.0,) * n_dim, offset=0.25)
    names = ("Ex", "Ey", "Ez")[:channels]
    ids = (7, 3, 5)[:samples]
    times = torch.linspace(0, 2, frames)
    return Trajectories(values, times, grid, names, ids, fixed, ("b",) if static else ())


def drawn(figure):
    """Axes with an image and the image, in order, without colour bars."""
    panels = [a for a in figure.axes if not a.get_label().startswith("<colorbar>")]
    meshes = [(a, [c for c in a.collections if isinstance(c, QuadMesh)]) for a in panels]
    return [(a, m[0]) for a, m in meshes if m]


def test_a_space_time_image_holds_the_field():
    """Rows are frames, columns points; edges lie between, and at the ends of the box."""
    data = random_data(1)
    for row, (axes, mesh) in enumerate(drawn(picture(data))):
        np.testing.assert_array_equal(mesh.get_array(), data.values[row, :, 0])
        edges = mesh.get_coordinates()
        x = data.grid.coordinates()[0].numpy()
        np.testing.assert_allclose(edges[0, 1:-1, 0], (x[1:] + x[:-1]) / 2)
        assert (edges[0, 0, 0], edges[0, -1, 0]) == (-1, 2)
        assert (edges[0, 0, 1], edges[-1, 0, 1]) == (0, 2)
        assert axes.get_title() == f"sample {data.ids[row]}"


def test_profiles_are_frames():
    """Below each image: u(x) at the first, an early and the last time."""
    data = random_data(1)
    profiles = [a for a in picture(data).axes if a.lines]
    assert len(profiles) == len(data)
    for field, axes in zip(data.values[:, :, 0], profiles, strict=True):
        for line, frame, time in zip(axes.lines, (0, 1, 10), ("0", "0.2", "2"), strict=True):
            np.testing.assert_array_equal(line.get_ydata(), field[frame])
            assert line.get_label() == f"t = {time}"


def test_frames_are_turned_so_that_x_runs_to_the_right():
    """One row per sample; static fields first, then each field at the same times."""
    data = random_data(2, channels=2, static=1, samples=2)
    panels = drawn(picture(data))
    assert len(panels) == 2 * (1 + 2 * 5)
    assert panels[0][0].get_title() == "b\n"
    np.testing.assert_array_equal(panels[11][1].get_array(), data.static[1, 0].T)
    shown = (0, 2, 5, 8, 10)
    for row, channel, column in np.ndindex(2, 2, 5):
        axes, mesh = panels[11 * row + 1 + 5 * channel + column]
        field = data.values[row, shown[column], channel]
        np.testing.assert_array_equal(mesh.get_array(), field.T)
        assert mesh.get_coordinates().shape == (8, 7, 2)
        if row == 0:
            time = f"{data.times[shown[column]]:.3g}"
            assert axes.get_title() == f"{data.names[channel]}\nt = {time}"


def test_a_field_at_rest_begins_with_its_first_motion():
    data = random_data(2, channels=2)
    data.values[:, 0, 1] = 0
    titles = [axes.get_title() for axes, _ in drawn(picture(data, samples=1))]
    assert titles[0] == "Ex\nt = 0"
    assert titles[5] == "Ey\nt = 0.2"


def test_three_axes_are_cut_in_the_middle():
    """z = const. at half of the points, every component at its first and last time."""
    data = random_data(3, channels=3, samples=2)
    figure = picture(data)
    panels = drawn(figure)
    shown = (0, 5, 10)
    for row, channel, column in np.ndindex(2, 3, 3):
        mesh = panels[9 * row + 3 * channel + column][1]
        field = data.values[row, shown[column], channel, :, :, 4]
        np.testing.assert_array_equal(mesh.get_array(), field.T)
    z = float(data.grid.coordinates()[2][4])
    assert figure.get_supxlabel() == f"in the plane z = {z:.3g}"


@pytest.mark.parametrize(("n_dim", "static"), [(1, 0), (2, 1)])
def test_pairs_look_like_the_trajectories_they_came_from(n_dim, static):
    """Static inputs among moving ones included."""
    data = random_data(n_dim, channels=2, static=static, frames=3, samples=2)
    inputs = ("Ex", *data.static_names, "Ey")
    made = pairs(data, inputs=inputs, n_input=2)
    one, other = (drawn(picture(d)) for d in (data, made))
    assert len(one) == len(other)
    for (_, mesh), (_, same) in zip(one, other, strict=True):
        np.testing.assert_array_equal(mesh.get_array(), same.get_array())


def norm_of(values):
    data = random_data(1)
    data.values[:] = values
    mesh = drawn(picture(data))[0][1]
    return mesh.norm.vmin, mesh.norm.vmax, mesh.get_cmap().name


def test_colours_fit_the_field():
    """White is 0 for fields of either sign; depths run from the lowest to the highest."""
    u = torch.linspace(-1, 3, 3 * 11 * 6).reshape(3, 11, 1, 6)
    assert norm_of(u) == (-3, 3, "RdBu_r")
    assert norm_of(u + 2) == (1, 5, "viridis")
    assert norm_of(u * 0 + 2) == (1.5, 2.5, "viridis")
    assert norm_of(u * torch.nan) == (0, 1, "viridis")


def test_a_peak_does_not_fade_the_rest():
    """One value in 3,300 is beyond the colours."""
    u = torch.linspace(1, 2, 3300).reshape(1, 11, 1, 300).clone()
    u[0, 0, 0, 0] = 1000
    data = Trajectories(u, torch.arange(11.0), Grid((300,), (0.0,), (1.0,)), ("u",), (0,))
    norm = drawn(picture(data))[0][1].norm
    assert (norm.vmin, norm.vmax) == pytest.approx((1, 2), abs=0.01)


def test_small_boxes_are_counted_in_powers_of_ten():
    data = random_data(1)
    small = Grid(data.grid.shape, (0.0,), (1.6e-5,))
    figure = picture(Trajectories(data.values, data.times, small, data.names, data.ids))
    mesh = drawn(figure)[0][1]
    assert mesh.get_coordinates()[0, -1, 0] == pytest.approx(1.6)
    assert [a.get_xlabel() for a in figure.axes if a.lines] == ["x / 1e-5"] * 3


def test_one_frame_can_be_drawn():
    for n_dim in (1, 2):
        assert len(drawn(picture(random_data(n_dim, frames=1)))) == 3


def test_a_benchmark_is_drawn_from_its_file(tmp_path, monkeypatch):
    """The first samples are generated where data are kept, and the picture is written."""
    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    out = show_benchmark("diffusion_reaction", samples=2, out=tmp_path / "a" / "dr.png", nu=0.1)
    assert out == tmp_path / "a" / "dr.png"
    image = imread(out)[..., :3]
    assert image.shape[1] > image.shape[0] > 200
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 200
    assert len(list((tmp_path / "data").glob("diffusion_reaction-smoke-2-seed0-*.hdf5"))) == 1


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="`samples` must be at least 1, got 0"):
        picture(random_data(1), samples=0)
    grid = Grid((2,) * 4, (0.0,) * 4, (1.0,) * 4)
    data = Trajectories(torch.zeros(1, 1, 1, *grid.shape), torch.zeros(1), grid, ("u",), (0,))
    with pytest.raises(ValueError, match="1, 2 or 3 axes can be drawn, got 4"):
        picture(data)
