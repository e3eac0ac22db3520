"""The studies: every table and figure of the paper, and some beyond it.

A study is a table whose rows are benchmarks: its runs, and how its table and figures look, are in
one file. Adding one takes that file and a line here.
"""

# In the order of the report.
# isort: off
from sfo.experiments.studies import main as main
from sfo.experiments.studies import pareto as pareto
from sfo.experiments.studies import start as start
from sfo.experiments.studies import data as data
from sfo.experiments.studies import coefficients as coefficients
from sfo.experiments.studies import layers as layers
from sfo.experiments.studies import sizes as sizes
from sfo.experiments.studies import grids as grids
from sfo.experiments.studies import boundary as boundary
from sfo.experiments.studies import design as design

# isort: on
from sfo.experiments.studies.cells import MAIN_MODELS, PAPER_BENCHMARKS
from sfo.registry import STUDIES

__all__ = ["MAIN_MODELS", "PAPER_BENCHMARKS", "STUDIES"]
