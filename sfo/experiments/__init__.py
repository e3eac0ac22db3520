"""Experiments: from a configuration to a Record of what was measured."""

from sfo.experiments.record import Record
from sfo.experiments.study import Cell, Study

__all__ = ["Cell", "Record", "Study"]
