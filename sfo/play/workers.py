"""A few threads that compute, with a queue of bounded length."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

Result = TypeVar("Result")


class Busy(Exception):
    """The queue is full, or a job waited too long."""


class Workers:
    """Threads with a queue; a job more than it holds is refused at once.

    Args:
        threads: How many compute at a time.
        waiting: How many jobs may wait.
        seconds: How long a caller waits for a result at most.
    """

    def __init__(self, threads: int = 1, waiting: int = 128, seconds: float = 60.0) -> None:
        self.most, self.seconds = threads + waiting, seconds
        self.jobs = 0
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sfo-play")

    async def run(self, job: Callable[..., Result], *arguments: Any) -> Result:
        """The job's result. A caller that goes away takes a job that has not begun with it."""
        with self._lock:
            if self.jobs >= self.most:
                raise Busy
            self.jobs += 1
        future = self._pool.submit(job, *arguments)
        future.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.seconds)
        except asyncio.TimeoutError:
            raise Busy from None

    def _done(self, future: "Future[Any]") -> None:
        with self._lock:
            self.jobs -= 1

    def close(self) -> None:
        """Forget the jobs that wait; the one that runs ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
