"""What a program sets once of its process."""

import subprocess
import sys

import pytest

THREADS = """
import ctypes, sys, threading
from sfo.machine import keep_freed_blocks
assert keep_freed_blocks()
for _ in range(3):
    thread = threading.Thread(target=lambda: bytearray(10**6))
    thread.start()
    thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc's malloc is told")
@pytest.mark.new_interpreter
def test_all_threads_share_one_heap(tmp_path):
    """What a thread has read is freed by another one; a heap per thread would keep the holes."""
    subprocess.run([sys.executable, "-c", THREADS, str(tmp_path / "heaps.xml")], check=True)
    assert (tmp_path / "heaps.xml").read_text().count("<heap nr=") == 1
