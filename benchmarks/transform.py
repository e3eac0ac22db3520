"""Inference by matrix products against FFT, at batch 1: ratios of times measured in turn."""

import argparse
import statistics
import time

import torch

from sfo.models.build import build_model

CASES = [
    ("allen_cahn", (256,)),
    ("allen_cahn", (1024,)),
    ("shallow_water", (64, 64)),
    ("maxwell", (16, 16, 16)),
]


def seconds(model: torch.nn.Module, a: torch.Tensor) -> float:
    """One prediction."""
    start = time.perf_counter()
    model(a)
    return time.perf_counter() - start


def main() -> None:
    """Print the median of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    for benchmark, grid in CASES:
        for preset in ("paper", "recommended"):
            models = {
                transform: build_model(
                    "sfo", benchmark, preset=preset, train_shape=grid, transform=transform
                ).eval()
                for transform in ("fft", "matmul")
            }
            a = torch.randn(1, models["fft"].in_channels, *grid)
            with torch.no_grad():
                for model in models.values():
                    model(a)
                pairs = [[seconds(m, a) for m in models.values()] for _ in range(rounds)]
            ratio = statistics.median(matmul / fft for fft, matmul in pairs)
            fastest = 1e3 * min(fft for fft, _ in pairs)
            shape = " × ".join(map(str, grid))
            print(f"{benchmark:14} {preset:12} {shape:12} matmul/fft {ratio:.2f}, {fastest:.1f} ms")


if __name__ == "__main__":
    main()
