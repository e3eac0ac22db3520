"""Pictures, tables and pages made from Records and runs."""

from sfo.report.build import write

__all__ = ["write"]
