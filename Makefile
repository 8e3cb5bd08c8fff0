# The two commands of README: `make demo` and `make test`. Everything is installed into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready.stamp

.PHONY: demo test check lint types imports docs test-faults fuzz test-slow test-cluster test-parsers bench clean

demo: $(READY)
	$(BIN)/sidequest demo

test: lint types imports docs
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

check: test

lint: $(READY)
	$(BIN)/ruff format --check src tests benchmarks experiments examples
	$(BIN)/ruff check src tests benchmarks experiments examples

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

# The documentation as a site; a broken link is an error.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

test-faults: $(READY)
	$(BIN)/python -m pytest -m "" tests/faults

# Broken inputs at random through everything that reads files: no traceback, no hang, nothing accepted in silence.
fuzz: $(READY)
	$(BIN)/python -m tests.fuzzing

test-slow: $(READY)
	$(BIN)/python -m pytest --numprocesses 2 -m slow

# Ray and PostgreSQL on loopback, started and stopped by the tests. PostgreSQL's server comes from the system (apt-get install postgresql).
test-cluster: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,demo,ray,postgresql]'
	$(BIN)/python -m pytest -m cluster

# Exports read by the trainers' own code; what is not installed is skipped, and named. TRAINER=… is the environment of one trainer, ONLY=… its name
# (docs/export.md), because their versions of libraries exclude each other.
TRAINER ?= $(VENV)
test-parsers: $(READY)
	$(TRAINER)/bin/python -m pytest -rs tests/runs/test_real_parsers.py $(if $(ONLY),-k $(ONLY))

bench: $(READY)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,demo]'
	touch $@

clean:
	rm -rf $(VENV)
