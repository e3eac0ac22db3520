"""A small problem with an exact solution, learned in about a minute: what `make demo` runs.

Burgers' equation ∂ₜu + u ∂ₓu = ν ∂ₓₓu on a circle. The Cole–Hopf transform u = −2ν ∂ₓθ/θ makes it
the heat equation for θ, which the Fourier transform solves exactly: no solver, no download.
"""

import math
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from sfo import plot
from sfo.allocator import keep_freed_blocks
from sfo.models import SFO


@dataclass(frozen=True)
class Burgers:
    """Burgers' equation on [0, 1) with the viscosity ν.

    Example:
        >>> u0 = 0.5 * torch.sin(2 * torch.pi * torch.arange(128).double() / 128)[None]
        >>> u = Burgers().solve(u0, torch.tensor([0.0, 1.0]))
        >>> bool((u[:, 0] - u0).abs().max() < 1e-10), bool(u[:, 1].abs().max() < u0.abs().max())
        (True, True)
    """

    viscosity: float = 0.02

    def solve(self, u0: Tensor, times: Tensor) -> Tensor:
        """The solution `(sample, time, n)` for initial states `(sample, n)` of mean 0."""
        n = u0.shape[-1]
        wave = 2j * math.pi * torch.arange(n // 2 + 1, dtype=torch.float64)
        u_hat = torch.fft.rfft(u0.double())
        integral = torch.fft.irfft(
            torch.where(wave == 0, 0, u_hat / torch.where(wave == 0, 1, wave)), n
        )
        theta_hat = torch.fft.rfft(torch.exp(-integral / (2 * self.viscosity)))
        decay = torch.exp(self.viscosity * times[:, None].double() * (wave**2).real)
        theta_hat = theta_hat[:, None] * decay
        theta = torch.fft.irfft(theta_hat, n)
        return -2 * self.viscosity * torch.fft.irfft(wave * theta_hat, n) / theta

    def initial_states(self, samples: int, n: int, seed: int) -> Tensor:
        """Random sums of the first four waves, `(sample, n)`."""
        generator = torch.Generator().manual_seed(seed)
        k = torch.arange(1, 5, dtype=torch.float64)
        c = torch.randn(samples, 2, 4, generator=generator, dtype=torch.float64) / k
        x = 2 * math.pi * k[:, None] * torch.arange(n) / n
        return 0.3 * (c[:, 0] @ x.sin() + c[:, 1] @ x.cos())


def run(out: Path, epochs: int = 150, samples: int = 256, seed: int = 0) -> float:
    """Train, show, and write pictures and the model into `out`; returns the test error in %.

    Args:
        out: Folder for the results.
        epochs: Passes over the training data; 150 take about a minute on two cores.
        samples: Training samples.
        seed: Of the data, the weights and the order of samples.
    """
    console = Console()
    keep_freed_blocks()
    torch.manual_seed(seed)
    n, times = 128, torch.linspace(0, 1, 21)
    equation = Burgers()
    a = equation.initial_states(samples + 64, n, seed)
    u = equation.solve(a, times).float()
    a = a[:, None].float()
    model = SFO.recommended(1, len(times), n_modes=16, hidden_channels=32)
    parameters = sum(p.numel() for p in model.parameters())
    console.print(
        f"[bold]Burgers' equation[/], u(x, 0) → u(x, t) at {len(times)} times, {n} points, "
        f"{samples} training and 64 test samples\nSFO with {parameters:,} parameters"
    )
    start = time.perf_counter()
    train(model, a[:samples], u[:samples], epochs, console)
    seconds = time.perf_counter() - start
    with torch.no_grad():
        prediction = model(a[samples:])
    errors = relative_l2(prediction, u[samples:])
    persistence = relative_l2(a[samples:].expand_as(prediction), u[samples:])
    out.mkdir(parents=True, exist_ok=True)
    median = int(errors.argsort()[len(errors) // 2])
    figure = picture(prediction[median], u[samples + median], times, float(errors[median]))
    figure.savefig(out / "prediction.png", dpi=130)
    plot.coefficients(model).savefig(out / "coefficients.png", dpi=130)
    plot.kernel(model.kernels[0], (n,)).savefig(out / "kernel.png", dpi=130)
    model.save_pretrained(out / "model")
    error = 100 * float(errors.mean())
    console.print(
        f"Trained in {seconds:.0f} s. Test error (mean relative L2): [bold]{error:.2f} %[/] "
        f"(keeping u(x, 0): {100 * float(persistence.mean()):.0f} %)\n"
        f"Pictures and model: {out}/prediction.png, kernel.png, coefficients.png, model/"
    )
    return error


def train(model: SFO, a: Tensor, u: Tensor, epochs: int, console: Console) -> None:
    """Adam with a one-cycle schedule on the relative L2 error, and a live progress bar."""
    batch = 16
    steps = -(-len(a) // batch)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=epochs * steps)
    columns = (
        TextColumn("epoch {task.completed:.0f}/{task.total:.0f}"),
        BarColumn(),
        TextColumn("training error {task.fields[error]:.2f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("train", total=epochs, error=100.0)
        for _ in range(epochs):
            total = 0.0
            for index in torch.randperm(len(a)).split(batch):
                optimizer.zero_grad()
                loss = relative_l2(model(a[index]), u[index]).mean()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                total += loss.item() * len(index)
            progress.update(task, advance=1, error=100 * total / len(a))


def relative_l2(prediction: Tensor, truth: Tensor) -> Tensor:
    """‖prediction − truth‖ / ‖truth‖ of each sample, over all channels and points."""
    return (prediction - truth).flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)


def picture(prediction: Tensor, truth: Tensor, times: Tensor, error: float) -> Figure:
    """Truth, prediction and error over space and time, and the curves at three times."""
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    axes = figure.subplots(1, 4)
    top = float(truth.abs().max())
    difference = prediction - truth
    off = float(difference.abs().max())
    extent = (0, 1, float(times[0]), float(times[-1]))
    for ax, title, values, limit in (
        (axes[0], "truth", truth, top),
        (axes[1], "prediction", prediction, top),
        (axes[2], f"error (relative L2 {100 * error:.2f} %)", difference, off),
    ):
        image = ax.imshow(
            values.numpy(),
            cmap="RdBu_r",
            vmin=-limit,
            vmax=limit,
            origin="lower",
            aspect="auto",
            extent=extent,
        )
        figure.colorbar(image, ax=ax)
        ax.set(title=title, xlabel="x", ylabel="t")
    x = (torch.arange(truth.shape[-1]) / truth.shape[-1]).numpy()
    for step, colour in zip((0, len(times) // 3, len(times) - 1), ("C0", "C1", "C3"), strict=True):
        axes[3].plot(x, truth[step].numpy(), color=colour, lw=3, alpha=0.35)
        axes[3].plot(
            x, prediction[step].numpy(), color=colour, lw=1, label=f"t = {float(times[step]):.2f}"
        )
    axes[3].set(title="curves (truth wide)", xlabel="x", ylabel="u")
    axes[3].legend(fontsize="small", frameon=False)
    return figure
