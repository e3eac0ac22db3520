"""`python -m sfo`."""

from sfo.cli import main

main()
