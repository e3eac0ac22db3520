"""Which devices to compute on, as a user says it, checked against those that there are."""

import os
from dataclasses import dataclass

import torch

from sfo.checks import check_choice

KINDS = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True)
class Devices:
    """Devices of one kind.

    Args:
        kind: "cpu", "cuda", "mps", or "auto" for the best that there is.
        ids: Which of them, by number; None: not said.
        number: How many of them, where `ids` are not said.
    """

    kind: str
    ids: tuple[int, ...] | None = None
    number: int | None = None

    @classmethod
    def of(cls, accelerator: str = "auto", devices: str | int | None = None) -> "Devices":
        """Devices by the options `--accelerator` and `--devices`; refused if one is not there.

        Args:
            accelerator: auto, cpu, cuda (or gpu) or mps.
            devices: A number is how many, a list such as "0,1" or "3," is which; None: not said.
        """
        kind = "cuda" if accelerator == "gpu" else accelerator
        check_choice("accelerator", kind, KINDS)
        ids, number = _parsed(devices)
        if kind == "auto" and ids is not None:
            kind = "cuda"
        available = torch.cuda.device_count()
        if kind == "mps" and not torch.backends.mps.is_available():
            raise ValueError("`accelerator` must be one that is here, got mps, which is not.")
        if kind == "cuda" and not available:
            raise ValueError(
                "`accelerator` must be one that is here: torch finds no CUDA device; leave "
                "--devices out or pass --accelerator cpu."
            )
        if ids is not None and kind != "cuda":
            raise ValueError(
                f"`devices` must be a number of processes on the accelerator {kind}, got {devices}."
            )
        wanted = max(ids) + 1 if ids else (number or 0) if kind == "cuda" else 0
        if wanted > available:
            there = ", ".join(map(str, range(available)))
            raise ValueError(
                f"`devices` must be some of the CUDA devices {there} that are here, got {devices}."
            )
        return cls(kind, ids, number)

    @classmethod
    def elsewhere(cls, accelerator: str = "auto", devices: str | None = None) -> "Devices":
        """The kind of device of jobs on other machines, whose devices cannot be seen from here.

        Args:
            accelerator: auto, cpu, cuda (or gpu) or mps.
            devices: Refused if said: the cluster gives each job its device.
        """
        kind = "cuda" if accelerator == "gpu" else accelerator
        check_choice("accelerator", kind, KINDS)
        if devices is not None:
            raise ValueError(
                f"`devices` must be left out where a cluster does the runs, got {devices}: with "
                "--accelerator cuda it gives each of them one GPU."
            )
        return cls(kind)

    def count(self) -> int | None:
        """How many there are here to choose from; None on the CPU, where all cores are."""
        if self.ids is not None:
            return len(self.ids)
        if self.kind == "cuda" or (self.kind == "auto" and torch.cuda.is_available()):
            return self.number or torch.cuda.device_count() or None
        return self.number

    def environment(self, worker: int) -> dict[str, str]:
        """What a process must find in its environment to see one of the devices only.

        Args:
            worker: The number of the process; the devices are taken in turn.

        Example:
            >>> Devices("cuda", (1, 3)).environment(worker=5)
            {'CUDA_VISIBLE_DEVICES': '3'}
        """
        seen = self.kind in ("cuda", "auto") and torch.cuda.is_available()
        if self.ids is None and not seen:
            return {}
        number = str(self._id(worker))
        # The numbers are those of the devices that this process was given itself.
        given = [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]
        return {"CUDA_VISIBLE_DEVICES": given[int(number)] if given else number}

    def _id(self, worker: int) -> int:
        ids = self.ids if self.ids is not None else tuple(range(self.count() or 1))
        return ids[worker % len(ids)]

    def one(self) -> torch.device:
        """The one device of a command that uses one."""
        if (self.count() or 1) > 1 and self.ids is not None:
            raise ValueError(
                f"`devices` must name one device here, such as {self.ids[0]}, with a comma, got "
                f"{','.join(map(str, self.ids))}."
            )
        if self.kind in ("cpu", "mps"):
            return torch.device(self.kind)
        if self.kind == "cuda" or torch.cuda.is_available():
            return torch.device("cuda", self._id(0))
        return torch.device("cpu")


def _parsed(devices: str | int | None) -> tuple[tuple[int, ...] | None, int | None]:
    """Which devices, and how many."""
    if devices is None:
        return None, None
    words = [word.strip() for word in str(devices).split(",")]
    is_list = len(words) > 1
    if is_list and words[-1] == "":
        words.pop()
    if not all(word.isdigit() for word in words) or len({*words}) < len(words):
        raise ValueError(
            f"`devices` must be a number, or a list such as 0,1 of different ones, got {devices!r}."
        )
    numbers = tuple(map(int, words))
    if is_list:
        return numbers, None
    if numbers[0] < 1:
        raise ValueError(
            f"`devices` must be at least 1, got {devices}; the device with number 0 alone is '0,'."
        )
    return None, numbers[0]
