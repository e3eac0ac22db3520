"""Python programs that a test starts, forked from one process that has imported the package.

A new interpreter takes two to four seconds to import torch and the package; a fork of one that has
done so takes milliseconds. `Popen` is subprocess.Popen in all else: pipes, signals, exit codes,
folder and environment. What is forked has the state of a fresh import, not that of the tests.

    python tests/forked.py SOCKET    the process that forks; it ends when its input does
"""

import atexit
import importlib
import inspect
import os
import pickle
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import suppress

IMPORTS = [
    *[
        "sfo.cli",
        "sfo.commands.studies",
        "sfo.commands.training",
        "sfo.data.generate",
        "sfo.data.load",
        "sfo.experiments.analyses",
    ],
    *["sfo.experiments.engines.local", "sfo.experiments.run", "sfo.experiments.worker"],
    *["sfo.report.build", "sfo.training.fit", "torch.distributed.run"],
]
NEW_INTERPRETER, PYTHON = subprocess.Popen, sys.executable
address = None
"""Of the process that forks, once it is started; what is forked inherits it."""


class Popen(NEW_INTERPRETER):
    """subprocess.Popen, that forks where the program is this Python's."""

    _status = None

    def _execute_child(self, *given):
        asked = inspect.signature(NEW_INTERPRETER._execute_child).bind(self, *given).arguments
        words = asked["args"]
        if isinstance(words, str) or str(words[0]) != PYTHON:
            return NEW_INTERPRETER._execute_child(self, *given)
        unheard = ["executable", "preexec_fn", "shell", "umask", "uid", "gid", "pass_fds"]
        assert all(asked.get(name) in (None, False, -1, ()) for name in unheard), asked
        pipes = ["p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite"]
        ends = [asked["p2cread"], asked["c2pwrite"], asked["errwrite"]]
        request = dict(
            words=[os.fspath(word) for word in words[1:]],
            env=dict(os.environ if asked["env"] is None else asked["env"]),
            cwd=os.path.abspath(asked["cwd"] or os.getcwd()),
            new_session=asked["start_new_session"],
        )
        try:
            self._status = socket.socket(socket.AF_UNIX)
            self._status.connect(_server())
            files = [k if end == -1 else end for k, end in enumerate(ends)]
            socket.send_fds(self._status, [b"f"], files)
            body = pickle.dumps(request)
            self._status.sendall(len(body).to_bytes(4, "little") + body)
            self.pid = int.from_bytes(_read(self._status, 4), "little")
            self._child_created = True
        finally:
            self._close_pipe_fds(*(asked[name] for name in pipes))
        return None

    def _try_wait(self, flags):
        if self._status is None:
            return super()._try_wait(flags)
        self._status.setblocking(flags != os.WNOHANG)
        try:
            answer = _read(self._status, 4)
        except BlockingIOError:
            return 0, 0
        return self.pid, int.from_bytes(answer, "little") if answer else signal.SIGKILL

    def _internal_poll(self, *given, **named):
        if self._status is None:
            return super()._internal_poll(*given, **named)
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(status)
        return self.returncode


def _read(connection, size):
    """So many bytes; none where the other end is closed."""
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            return b""
        found += more
    return found


def _server():
    """The address of the process that forks; the first call starts it."""
    global address
    if address is None:
        place = os.path.join(tempfile.mkdtemp(prefix="forked-"), "socket")
        alone = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
        server = NEW_INTERPRETER(
            [PYTHON, os.path.abspath(__file__), place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **alone},
            start_new_session=True,
        )
        assert server.stdout.readline() == b"ready\n"
        address = place
        atexit.register(server.communicate)
    return address


def serve(place):
    """Fork what is asked for, and say how it ended, until the input ends."""
    global address
    sys.path.pop(0)  # The folder of this file, of which a program of the tests knows nothing.
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    for name in IMPORTS:
        importlib.import_module(name)
    subprocess.Popen, address = Popen, place  # Also for what is forked.
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen()
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(0, selectors.EVENT_READ)
    os.write(1, b"ready\n")
    while True:
        for key, _ in selector.select():
            if key.fileobj == 0:
                return
            if key.fileobj is listener:
                connection, _ = listener.accept()
                _, files, _, _ = socket.recv_fds(connection, 1, 3)
                body = _read(connection, int.from_bytes(_read(connection, 4), "little"))
                pid = os.fork()
                if pid == 0:
                    selector.close()
                    listener.close()
                    connection.close()
                    _become(files, **pickle.loads(body))
                for file in files:
                    os.close(file)
                with suppress(BrokenPipeError):
                    connection.sendall(pid.to_bytes(4, "little"))
                watch = os.pidfd_open(pid)
                selector.register(watch, selectors.EVENT_READ, (pid, connection))
            else:
                pid, connection = key.data
                _, status = os.waitpid(pid, 0)
                with suppress(BrokenPipeError):
                    connection.sendall(status.to_bytes(4, "little"))
                connection.close()
                selector.unregister(key.fileobj)
                os.close(key.fileobj)


def _become(files, words, env, cwd, new_session):
    """Run a program as a new interpreter would, and end."""
    if new_session:
        os.setsid()
    for end, file in enumerate(files):
        os.dup2(file, end)
        os.close(file)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    code = 1
    try:
        try:
            _run(words)
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            if code and not isinstance(stop.code, int):
                print(stop.code, file=sys.stderr)
        except KeyboardInterrupt:
            traceback.print_exc()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        except BaseException:
            traceback.print_exc()
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
    finally:
        os._exit(code & 0xFF)


def _run(words):
    words = list(words)
    while words[0] in ("-W", "-B", "-u"):
        option = words.pop(0)
        if option == "-W":
            import warnings

            warnings.simplefilter(words.pop(0))
    first, *rest = words
    paths = list(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    here = os.path.dirname(os.path.abspath(first)) if first not in ("-m", "-c") else ""
    sys.path[:0] = [here or os.getcwd() if first == "-m" else here, *paths]
    sys.orig_argv = [PYTHON, *words]
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = type(sys)("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = words
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])
