"""A Slurm of one machine, as far as submitit asks for it: sbatch, srun, sacct, scontrol, scancel.

Each command is this file under its name. The folder $FAKE_SLURM has a file for every task of a
job, `1_0` say, with its state and the process of its srun, and the last batch script.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = ("sbatch", "srun", "sacct", "scontrol", "scancel")


def install(folder, monkeypatch):
    """Put the commands in front of all others; the folder of the states."""
    (folder / "bin").mkdir(parents=True)
    for command in COMMANDS:
        path = folder / "bin" / command
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -I {__file__} {command} "$@"\n')
        path.chmod(0o755)
    (folder / "states").mkdir()
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SLURM", str(folder / "states"))
    return folder / "states"


def states():
    return Path(os.environ["FAKE_SLURM"])


def note(job, state):
    """In one step: the state of a job is read at any time."""
    path = states() / f".{job}.{os.getpid()}"
    path.write_text(state)
    path.replace(states() / job)


def sbatch(script):
    """Queue the tasks of a job; a process that outlives this one starts them."""
    text = Path(script).read_text()
    if "partition=none" in text:
        sys.exit("sbatch: error: invalid partition specified: none\nsbatch: error: Batch job")
    (states() / "script").write_text(text)
    job = 1 + max((int(path.name.split("_")[0]) for path in states().glob("[0-9]*_*")), default=0)
    found = re.search(r"--array=0-(\d+)%(\d+)", text)
    last, at_once = map(int, found.groups()) if found else (0, 1)
    for task in range(last + 1):
        note(f"{job}_{task}", "PENDING")
    print(f"Submitted batch job {job}", flush=True)
    if os.fork():
        return
    os.setsid()
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silent, stream)
    run_all(job, script, last + 1, at_once, is_array=bool(found))


def run_all(job, script, tasks, at_once, is_array):
    """Run tasks that are pending, so many at once, until none is left."""
    running = {}
    while True:
        for task, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[task]
            name = f"{job}_{task}"
            state = (states() / name).read_text().split()[0]
            if state == "RUNNING":
                note(name, "COMPLETED" if process.returncode == 0 else "FAILED")
            elif state == "REQUEUED":
                note(name, "PENDING")
        names = [f"{job}_{task}" for task in range(tasks)]
        pending = [n for n in names if (states() / n).read_text() == "PENDING"]
        if not pending and not running:
            return
        for name in pending[: at_once - len(running)]:
            task = int(name.split("_")[1])
            array = dict(SLURM_ARRAY_JOB_ID=str(job), SLURM_ARRAY_TASK_ID=str(task))
            environment = {**os.environ, "SLURM_JOB_ID": str(job), **(array if is_array else {})}
            note(name, "RUNNING")
            running[task] = subprocess.Popen(["bash", script], env=environment)
        time.sleep(0.05)


def srun(*words):
    """Become the task, which writes to the files that are said."""
    job = os.environ["SLURM_JOB_ID"]
    task = os.environ.get("SLURM_ARRAY_TASK_ID", "0")
    words = list(words)
    while words[0].startswith("--"):
        option = words.pop(0)
        if option in ("--output", "--error"):
            place = words.pop(0).replace("%A", job).replace("%j", job)
            with open(place.replace("%a", task).replace("%t", "0"), "a") as file:
                os.dup2(file.fileno(), 1 if option == "--output" else 2)
    note(f"{job}_{task}", f"RUNNING {os.getpid()}")
    os.execvp(words[0], words)


def sacct(*words):
    print("JobID|State|NodeList")
    for path in sorted(states().glob("[0-9]*_*")):
        state = path.read_text().split()[0]
        print(f"{path.name}|{state}|here")
        if path.name.endswith("_0"):
            print(f"{path.name.split('_')[0]}|{state}|here")


def scontrol(command, job):
    assert command == "requeue"
    note(job if "_" in job else f"{job}_0", "REQUEUED")


def scancel(job, *words):
    job = job if "_" in job else f"{job}_0"
    process = (states() / job).read_text().split()[1:]
    if words:
        os.kill(int(process[0]), getattr(signal, words[1]))
        return
    note(job, "CANCELLED")
    if process:
        os.kill(int(process[0]), signal.SIGTERM)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
