import pytest
import torch

from sfo import SFO, plot
from sfo.bases import usb_modes


def test_modes_are_the_curves():
    (axes,) = plot.modes(n=32, n_modes=3).axes
    curves = [torch.as_tensor(line.get_ydata()) for line in axes.lines[:3]]
    torch.testing.assert_close(torch.stack(curves), usb_modes(32, 3))


def test_coefficients_are_frobenius_norms():
    model = SFO(1, 1, n_modes=5, hidden_channels=8, n_layers=2)
    (axes,) = plot.coefficients(model).axes
    mean = torch.stack([torch.linalg.matrix_norm(k.theta) for k in model.kernels]).mean(0)
    shown = torch.as_tensor(axes.lines[-1].get_ydata())
    torch.testing.assert_close(shown, mean.detach())


@pytest.mark.parametrize("n_dim", [1, 2, 3])
def test_kernels_are_drawn_with_offset_0_in_the_middle(n_dim, tmp_path):
    kernel = SFO(1, 1, n_dim, n_modes=4, hidden_channels=8, n_layers=1).kernels[0]
    figure = plot.kernel(kernel, (8,) * n_dim, channels=[(1, 2)])
    figure.savefig(tmp_path / "kernel.png")
    (axes,) = figure.axes
    kappa = kernel.spatial((8,) * n_dim)[1, 2]
    if n_dim == 1:
        x, y = axes.lines[0].get_data()
        assert y[list(x).index(0)] == pytest.approx(kappa[0].item())
    else:
        image = torch.as_tensor(axes.images[0].get_array())
        origin = kappa[(0,) * n_dim]
        assert image[4, 4].item() == pytest.approx(origin.item(), rel=1e-5)
