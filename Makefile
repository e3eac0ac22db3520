# Two commands: `make demo` and `make test`. Each sets up .venv first; a second call is quick.
PYTHON ?= python3
BIN := .venv/bin
export MPLBACKEND := Agg

.PHONY: demo test test-slow test-peers bench theory lint clean

demo: .venv/.dev
	$(BIN)/sfo demo --out runs/demo

# Lint, types, doctests and tests, on all cores with one thread each.
test: .venv/.dev lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m "not slow and not peers"

test-slow: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m "slow and not peers"

test-peers: .venv/.peers
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m peers tests/peers

# Also `make bench ALLOCATOR=default`, with malloc left as it is.
ALLOCATOR ?= keep
bench: .venv/.peers
	$(BIN)/python benchmarks/step.py --allocator $(ALLOCATOR) --json benchmarks/step-$(ALLOCATOR).json

theory: .venv/.dev
	$(BIN)/sfo theory --out docs/theory

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.dev: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

.venv/.peers: .venv/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,peers]"
	touch $@

clean:
	rm -rf .venv runs build dist *.egg-info
