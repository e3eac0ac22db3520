"""What this machine has: usable cores, and memory that is kept for the next step."""

import ctypes
import os
import sys


def usable_cores() -> int:
    """Cores that this process may run on, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def keep_freed_blocks() -> bool:
    """Tell glibc's malloc to reuse large blocks, of all threads; returns whether it could.

    By default each large tensor is mapped from the system, page by page, and unmapped when it
    is freed: every training step pays for it again, 1.2–3.6 times its run time on a CPU. This
    sets the process' allocator once, so a program calls it, never a library function. It does
    nothing on other systems or on a GPU, where torch caches blocks itself.

    By default each thread also has a heap of its own, in parts of 64 MB, in which what another
    thread frees is of no use to it: a batch of 40 MB that is read ahead leaves holes. Training on
    Shallow Water at the paper's scale from its file took 1.8 to 2.7 GB, and 1.5 with one heap.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    # From malloc.h. The arguments are C ints: the largest stands for "never".
    trim_threshold, top_pad, mmap_threshold, arena_max, never = -1, -2, -3, -8, 2**31 - 1
    settings = (
        (mmap_threshold, never),
        (trim_threshold, never),
        (top_pad, 2**28),
        (arena_max, 1),
    )
    return all(mallopt(setting, value) == 1 for setting, value in settings)
