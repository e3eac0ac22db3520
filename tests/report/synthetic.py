"""Records and analyses made up for the report, without training."""

import hashlib

from sfo.evaluation.errors import Errors
from sfo.experiments.record import Analysis, Record
from sfo.experiments.results import Results, name
from sfo.experiments.studies import MAIN_MODELS, PAPER_BENCHMARKS, STUDIES

N_SAMPLES = 8


def noise(text):
    """Between 0 and 1, the same for the same text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def record(experiment, relative_l2=None, validation=None):
    """A Record whose error is given, or any but always the same."""
    key = name(experiment)
    if relative_l2 is None:
        # Seeds differ less than models do.
        model = f"{experiment.data.benchmark} {experiment.model}"
        error = (0.001 + 0.02 * noise(model)) * (1 + 0.01 * noise(key))
    else:
        error = relative_l2
    spread = [0.5 + noise(f"{key}{k}") for k in range(N_SAMPLES)]
    per_sample = [error * s * N_SAMPLES / sum(spread) for s in spread]
    errors = Errors(
        relative_l2=error,
        per_sample=per_sample,
        per_time=[error, error],
        boundary_l2=2 * error,
        interior_l2=error / 2,
        max_error=1.0,
        pdenneval_l2re=[error],
        pdenneval_max=[1.0],
        pdebench_rmse=error,
        pdebench_nrmse=error,
        pdebench_max=1.0,
        neuralop_l2=error,
        zero_targets=0,
    )
    parameters = 10_000 + int(1e6 * noise(experiment.model.name))
    return Record(experiment, errors, parameters, 1, validation or error, 2)


def fill(folder, *studies, scale="smoke", seeds=1, only=lambda cell: True, error=None):
    """A folder with Records of all cells of the studies, trials and analyses included.

    `error` gives the relative error of a cell's run, from the cell and the run.
    """
    results = Results(folder)
    for study in studies:
        for cell in filter(only, STUDIES[study].cells(scale, seeds)):
            for trial in cell.trials():
                _keep(results, record(trial))
            for run in cell.runs(results):
                _keep(results, record(run, error(cell, run) if error else None))
                for kind in STUDIES[study].analyses:
                    values = ANALYSES[kind](run)
                    if values is not None and results.analysis(kind, run) is None:
                        results.keep(Analysis(run, kind, values))
    return results


def _keep(results, made):
    if results.record(made.experiment) is None:
        results.keep(made)


def coefficients(run):
    """Two layers of four modes that decay, with means 3, 2, 1, 0.5."""
    return {"norms": [[4.0, 3.0, 1.0, 0.5], [2.0, 1.0, 1.0, 0.5]]}


def transfer(run):
    """Trained on 64 points; the modes do not fit 16."""
    ways = {"rebuild": {"64": 1.0, "32": 2.0, "16": None}, "restrict": {"64": 1.0, "32": 1.5}}
    if run.model.name == "fno":
        ways = {"evaluate": {"64": 1.25, "32": 3.0, "16": 9.0}}
    return {"trained": 64, "percent": ways}


ANALYSES = {"coefficients": coefficients, "transfer": transfer}


def measurements(results):
    """Tables of parameters and times."""
    counts = {b: {m: 1000 * (k + 1) for k, m in enumerate(MAIN_MODELS)} for b in PAPER_BENCHMARKS}
    seconds = {b: {m: 0.5 * (k + 1) for k, m in enumerate(MAIN_MODELS)} for b in PAPER_BENCHMARKS}
    results.keep_table("params", {"counts": counts})
    results.keep_table("runtime", {"seconds": seconds, "rounds": 5, "scale": "smoke"})
