"""One training on two nodes, both on this machine: started by torchrun, preempted and resumed."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from small_runs import ended, in_child, meeting_place, small, traces

from sfo.training import checkpoint
from sfo.training.fit import fit


def fit_in_processes(experiment, folder):
    fit(experiment, folder, resume="auto")


def as_nodes(function, *arguments, nodes):
    """Exit codes of processes of which each finds itself alone on its node."""
    store = meeting_place()
    common = dict(
        WORLD_SIZE=2,
        LOCAL_WORLD_SIZE=2 // nodes,
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=store.port,
        TORCHELASTIC_USE_AGENT_STORE=True,
        TORCHELASTIC_RUN_ID="test",
        TORCHELASTIC_RESTART_COUNT=0,
    )
    started = [
        in_child(
            function,
            *arguments,
            environment={**common, "RANK": k, "LOCAL_RANK": k % (2 // nodes), "GROUP_RANK": k},
        )
        for k in range(2)
    ]
    try:
        return [ended(process, seconds=180) for process in started]
    finally:
        for process in started:
            process.kill()


def test_a_run_of_one_process_is_alone_in_a_slurm_job_of_many_tasks(tmp_path, monkeypatch):
    """Fabric looked for the other tasks, and refused the options of the job."""
    job = dict(NTASKS=8, JOB_ID=7, JOB_NAME="study", PROCID=3, LOCALID=3, NODEID=0)
    for key, value in job.items():
        monkeypatch.setenv(f"SLURM_{key}", str(value))
    fit(small(epochs=1), tmp_path / "task")
    for key in job:
        monkeypatch.delenv(f"SLURM_{key}")
    fit(small(epochs=1), tmp_path / "whole")
    assert traces(tmp_path / "task") == traces(tmp_path / "whole")


@pytest.mark.slow
def test_two_nodes_give_the_bits_of_two_processes_on_one(tmp_path):
    for nodes in (1, 2):
        codes = as_nodes(fit_in_processes, small(), tmp_path / str(nodes), nodes=nodes)
        assert codes == [0, 0]
    assert traces(tmp_path / "1") == traces(tmp_path / "2")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def launch(*command):
    """torchrun on two nodes that meet on loopback."""
    port = free_port()
    words = f"--nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:{port}"
    # Of two agents on one machine, which is the host of the meeting must be said.
    return [
        subprocess.Popen(
            [
                *[sys.executable, "-m", "torch.distributed.run", *words.split()],
                *["--rdzv-id", "test", "--rdzv-conf", f"is_host={int(node == 0)}"],
                *["-m", "sfo", *command],
            ],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for node in range(2)
    ]


def wait(nodes):
    return [node.communicate(timeout=300)[0] for node in nodes]


@pytest.mark.slow
def test_torchrun_on_two_nodes_is_preempted_and_goes_on(tmp_path):
    """As docs/cluster.md has it: SIGTERM to every node, then `sfo resume` on every node."""
    experiment = small(epochs=60)
    (tmp_path / "run.json").write_text(experiment.to_json())
    train = ["train", "--config", str(tmp_path / "run.json"), "--out"]
    said = wait(launch(*train, str(tmp_path / "calm")))
    assert (tmp_path / "calm" / "record.json").exists(), said
    nodes, folder = launch(*train, str(tmp_path / "stopped")), tmp_path / "stopped"
    while len(list((folder / "checkpoints").glob("step-*"))) < 2:
        time.sleep(0.05)
        assert all(node.poll() is None for node in nodes)
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    said = wait(nodes)
    assert not (folder / "record.json").exists(), "it ended before it could be stopped"
    assert checkpoint.latest(folder / "checkpoints") is not None, said
    said = wait(launch("resume", str(folder)))
    assert (folder / "record.json").exists(), said
    assert traces(folder) == traces(tmp_path / "calm")
    assert (folder / "record.json").read_bytes() == (tmp_path / "calm/record.json").read_bytes()
