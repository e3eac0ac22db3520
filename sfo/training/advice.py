"""What is worth saying before a training starts."""

from math import prod

from sfo.data.load import load_file
from sfo.data.streamed import STREAM_BYTES
from sfo.registry import BENCHMARKS
from sfo.training.config import Experiment

BATCH_BYTES = 2**26
"""Solutions of a batch that are worth a word: 64 MB, of which a step takes some twenty times."""


def memory_advice(experiment: Experiment, stream: bool | None = None) -> str | None:
    """How to take less memory, where samples are too large for all of a batch at a time.

    Nothing is changed by itself, because the numbers would differ in their last digits.

    Args:
        experiment: What is to be trained, on a benchmark.
        stream: Whether samples are read from their file batch by batch; None: as is usual.

    Example:
        >>> memory_advice(Experiment.of("shallow_water", scale="desk")) is None
        True
        >>> "--micro-batch 2 " in memory_advice(Experiment.of("shallow_water", scale="paper"))
        True
    """
    data, train = experiment.data, experiment.train
    if data.arrays is not None or train.micro_batch is not None or stream is False:
        return None
    kind = BENCHMARKS[data.benchmark].with_options(**data.options)
    if data.file is not None:
        file = load_file(data.file, data.stride, data.time_stride)
        shape, times, names, samples = file.grid.shape, file.times, file.names, len(file)
    else:
        scale = kind.scale(data.scale)
        grid, all_times = kind.stored(scale)
        shape = grid.subsample(data.stride or scale.stride).shape
        times, names = all_times[:: data.time_stride], kind.names
        samples = data.samples or scale.samples
    sample_bytes = 4 * prod(shape) * len(times) * len(names)
    samples = min(samples, data.train_samples or samples)
    batch = min(train.batch_size, samples)
    is_read = stream or sample_bytes * samples > STREAM_BYTES
    if not is_read or batch * sample_bytes < BATCH_BYTES:
        return None
    return (
        f"A step on {batch} samples of {sample_bytes / 1e6:.0f} MB takes some twenty times their "
        f"memory; --micro-batch 2 takes them two at a time, for the same step but for rounding."
    )
