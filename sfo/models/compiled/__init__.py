"""Loops compiled by numba for the CPU, each beside the plain version that it must equal."""
