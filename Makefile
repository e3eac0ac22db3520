# Two commands: `make demo` and `make test`. Each sets up .venv first; a second call is quick.
PYTHON ?= python3
BIN := .venv/bin
export MPLBACKEND := Agg

.PHONY: demo test test-slow test-peers test-engines bench theory docs tutorials lint clean

demo: .venv/.dev
	$(BIN)/sfo demo --out runs/demo

# Lint, types, doctests and tests, on all cores with one thread each.
test: .venv/.dev lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile -m "not slow and not peers and not engines"

test-slow: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m "slow and not peers and not engines"

test-peers: .venv/.peers
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m peers tests/peers

# The Ray engine, and the loggers that send curves elsewhere.
test-engines: .venv/.engines
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "engines and not slow" tests/experiments tests/training

# Also `make bench ALLOCATOR=default`, with malloc left as it is.
ALLOCATOR ?= keep
bench: .venv/.peers
	$(BIN)/python benchmarks/step.py --allocator $(ALLOCATOR) --json benchmarks/step-$(ALLOCATOR).json

theory: .venv/.dev
	$(BIN)/sfo theory --out docs/theory

# The site, in build/site: warnings are errors, and nothing is fetched from anywhere.
docs: .venv/.docs
	$(BIN)/python docs/assemble.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python docs/check_site.py

# The tutorials at full size, some minutes: their pages with what they print and draw.
tutorials: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/python docs/run_tutorials.py

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

.venv/.docs: .venv/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,docs]"
	touch $@

.venv/.engines: .venv/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,slurm,ray,loggers]"
	touch $@

clean:
	rm -rf .venv runs build dist *.egg-info
