"""Samples that are read when they are asked for: arrays in memory, on disk or in HDF5 files."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

READ_NUMBERS = 2**22
"""Numbers that are read at a time when all samples are gone through: 16 MB in float32."""


class Rows:
    """What `Pairs` needs of a tensor `(sample, channel, *grid)`, read from elsewhere row by row.

    Indexing gives float32 tensors on the CPU; nothing that was read is kept.

    Args:
        shape: Shape of the whole array.
        read: From a list of samples to a copy of their values, an array or tensor of any float
            type.
        ids: Which samples these rows are; None: all.

    Example:
        >>> rows = array_rows(np.arange(12.0).reshape(3, 2, 2))
        >>> rows[[2, 0]][:, 0, 0]
        tensor([8., 0.])
        >>> rows.select([1, 2]).shape
        torch.Size([2, 2, 2])
    """

    def __init__(
        self,
        shape: Sequence[int],
        read: Callable[[list[int]], np.ndarray | Tensor],
        ids: Sequence[int] | Tensor | None = None,
    ) -> None:
        self.ids = torch.arange(shape[0]) if ids is None else torch.as_tensor(ids)
        self.shape = torch.Size((len(self.ids), *shape[1:]))
        self._whole, self._read = tuple(shape), read

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ndim(self) -> int:
        """Number of axes, samples and channels included."""
        return len(self.shape)

    def __getitem__(self, rows: int | slice | Sequence[int] | Tensor) -> Float[Tensor, "..."]:
        """Some of the samples; one without its axis if asked for by a number."""
        chosen = self.ids[rows]
        values = self._read(chosen.reshape(-1).tolist())
        if isinstance(values, np.ndarray):
            values = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
        values = values.detach().to("cpu", torch.float32)
        return values if chosen.ndim else values[0]

    def select(self, rows: Sequence[int]) -> "Rows":
        """Some of the samples, not read yet."""
        return Rows(self._whole, self._read, self.ids[torch.as_tensor(rows, dtype=torch.int64)])

    def split(self, size: int) -> Iterator[Float[Tensor, "sample channel ..."]]:
        """All samples, `size` at a time."""
        for first in range(0, len(self), size):
            yield self[first : first + size]

    def chunks(self) -> Iterator[Float[Tensor, "sample channel ..."]]:
        """All samples, as many at a time as take little memory."""
        return self.split(max(1, READ_NUMBERS // max(1, self.shape[1:].numel())))


def array_rows(array: Any) -> Rows:
    """The rows of a NumPy array, a memory map, a torch tensor or an HDF5 dataset."""
    if isinstance(array, Tensor):
        return Rows(array.shape, lambda ids: array[torch.tensor(ids, device=array.device)])
    if isinstance(array, np.ndarray):
        return Rows(array.shape, lambda ids: array[ids])

    # h5py's own selection of many rows wants them sorted, and is slower than one after another.
    def one_by_one(ids: list[int]) -> np.ndarray:
        return np.stack([np.asarray(array[i]) for i in ids])

    return Rows(array.shape, one_by_one)


def channel_moments(
    rows: Rows,
) -> tuple[Float[Tensor, " channel"], Float[Tensor, " channel"]]:
    """Mean and variance of each channel over samples and points, in float64, in one pass.

    Means and sums of squared deviations of parts are merged, which loses no digits (Chan, Golub
    and LeVeque, 1979).

    Example:
        >>> channel_moments(array_rows(np.array([[[1.0, 3.0]], [[5.0, 7.0]]])))
        (tensor([4.], dtype=torch.float64), tensor([5.], dtype=torch.float64))
    """
    count, mean, squares = 0, torch.zeros(1), torch.zeros(1)
    for chunk in rows.chunks():
        values = chunk.double().transpose(0, 1).flatten(1)
        n, m = values.shape[1], values.mean(1)
        s = (values - m[:, None]).square().sum(1)
        if not count:
            count, mean, squares = n, m, s
            continue
        apart, total = m - mean, count + n
        mean = mean + apart * (n / total)
        squares = squares + s + apart.square() * (count * n / total)
        count = total
    return mean, squares / max(1, count)
