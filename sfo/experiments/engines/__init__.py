"""Where the runs of a study are done: on this machine, by Slurm, or on a Ray cluster.

An engine takes jobs, each in JSON, and reports events. Any job may be given again: what is done
is in the Records, and what was started continues from its checkpoint. So an engine may lose
workers,
and be killed itself, at any time.
"""

from sfo.experiments.engines.engine import Engine, EngineName, Event, make_engine

__all__ = ["Engine", "EngineName", "Event", "make_engine"]
