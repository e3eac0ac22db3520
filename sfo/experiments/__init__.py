"""Experiments: from a configuration to a Record of what was measured."""
