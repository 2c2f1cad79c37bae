# Two commands do all: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
.PHONY: demo test test-all lint coverage docs papers bench bench-peers bench-full clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $@

demo: $(VENV)/.ready
	$(BIN)/python examples/demo.py --out demo

test: lint
	$(BIN)/python -m pytest -n auto

# Every Python of the list that is installed, each in an environment of its own; says which were not.
PYTHONS ?= python3.11 python3.12 python3.13
test-all:
	@for python in $(PYTHONS); do \
	  if $$python -c "" 2>/dev/null; then \
	    echo "== $$python"; \
	    $$python -m venv .venvs/$$python && .venvs/$$python/bin/python -m pip install --quiet --editable ".[test]" \
	      && .venvs/$$python/bin/python -m pytest -n auto -q || exit 1; \
	  else echo "== $$python is not installed: not tested"; fi; \
	done

coverage: $(VENV)/.ready
	$(BIN)/python -m coverage run --parallel-mode -m pytest -n 0
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --skip-covered --sort=cover

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

papers: $(VENV)/.ready
	$(BIN)/python benchmarks/run.py --papers

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/run.py --quick

bench-peers: $(VENV)/.ready
	$(BIN)/python benchmarks/run.py --peers

bench-full: $(VENV)/.ready
	$(BIN)/python benchmarks/run.py --full

clean:
	rm -rf $(VENV) demo docs/_build .pytest_cache .mypy_cache .ruff_cache
