"""Stop politely: finish the step and save; at the second signal stop at once."""

import os
import signal
from types import FrameType, TracebackType
from typing import Any


class Stopped(SystemExit):
    """A run that was asked to stop, and saved; its code is 128 + the signal's number."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.signal = signal.Signals(number)


class StopRequest:
    """Context in which signals are noted in `received` instead of ending the process.

    SIGTERM and SIGINT, of which a second one ends it at once; and SIGUSR1 and SIGUSR2, which Slurm
    sends ahead of a job's end if asked to. These may come with a SIGTERM before or after, and are
    what counts then: a job is put back into the queue by them.

    Outside the main thread, where Python allows no handlers, it only stays 0.
    """

    SIGNALS = tuple(
        getattr(signal, kind)
        for kind in ("SIGTERM", "SIGINT", "SIGUSR1", "SIGUSR2")
        if hasattr(signal, kind)  # Windows has the first two.
    )

    def __init__(self) -> None:
        self.received = 0
        self._asked_to_end = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        try:
            for number in self.SIGNALS:
                self._previous[number] = signal.signal(number, self._note)
        except ValueError:
            self._previous = {}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            # None stands for a handler that was not set from Python and cannot be from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            if self._asked_to_end:
                os._exit(128 + number)
            self._asked_to_end = True
            self.received = self.received or number
        else:
            self.received = number
