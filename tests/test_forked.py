"""What is forked for the tests behaves as a program of its own."""

import os
import signal
import subprocess
import sys

import forked
import pytest

PROGRAMS = {
    "output": "import os, sys; print(os.getcwd(), os.environ['COLOUR'], sys.argv, len(os.environ))",
    "input": "import sys; print(sys.stdin.read().upper(), end='')",
    "exit code": "import sys; sys.exit(3)",
    "last words": "import sys; sys.exit('no room')",
    "error": "raise ValueError('no room')",
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "at exit": "import atexit; atexit.register(print, 'the end')",
    "a program of a program": "import subprocess, sys; "
    "print(subprocess.run([sys.executable, '-c', 'raise SystemExit(5)']).returncode)",
    "no thread is cut off": "import threading, time; "
    "threading.Thread(target=lambda: (time.sleep(0.05), print('done'))).start()",
}


def answer(kind, program, folder):
    command = [sys.executable, "-W", "ignore", "-c", program, "one", "two"]
    process = kind(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={"COLOUR": "red", "LC_CTYPE": "C.UTF-8"},
    )
    out, err = process.communicate("some words")
    return process.returncode, out, err.splitlines()[-1:]


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_ends_as_in_a_new_interpreter(name, tmp_path):
    found = answer(forked.Popen, PROGRAMS[name], tmp_path)
    assert found == answer(forked.NEW_INTERPRETER, PROGRAMS[name], tmp_path)


def test_signals_reach_it_and_a_session_is_its_own():
    program = "import os; print(os.getpid(), os.getsid(0), flush=True); input()"
    process = forked.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline().split() == [str(process.pid)] * 2
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(60) == process.poll() == -signal.SIGTERM
    process.stdin.close()
    process.stdout.close()


def test_nothing_of_the_tests_is_in_it():
    program = (
        "import sys; print([m for m in sys.modules if m in ('pytest', 'hypothesis', 'conftest')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n"
