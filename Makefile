# Two commands do all: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
.PHONY: demo test test-all test-lowest lint coverage docs papers bench bench-peers bench-full clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $@

demo: $(VENV)/.ready
	$(BIN)/python examples/demo.py --out demo

test: lint
	$(BIN)/python -m pytest -n auto

# Every Python of the list that is installed, each in an environment of its own with the newest versions of what gingham
# needs, then the lowest versions that pyproject.toml declares; says which Pythons were not tested.
PYTHONS ?= python3.11 python3.12 python3.13
test-all: test-lowest
	@for python in $(PYTHONS); do \
	  found=$$(for at in $$python $$HOME/.pyenv/versions/$${python#python}*/bin/$$python; do \
	    $$at -c "" 2>/dev/null && echo $$at && break; done); \
	  if [ -n "$$found" ]; then \
	    echo "== $$python, newest versions"; \
	    $$found -m venv .venvs/$$python && .venvs/$$python/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable ".[test]" \
	      && .venvs/$$python/bin/python -m pytest -n auto -q || exit 1; \
	  else echo "== $$python is not installed: not tested"; fi; \
	done

# Old versions of other packages warn of things that they no longer do: here warnings are no errors.
LOWEST := .venvs/lowest
QUICK  := tests/cells tests/core tests/data tests/fitting tests/engine tests/models tests/certificates tests/selection \
          tests/summary tests/plots tests/report tests/cli tests/test_storage.py tests/test_verify.py
test-lowest:
	@echo "== lowest versions that are declared"
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) tests/lowest_versions.py > $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -r $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(LOWEST)/bin/python -m pytest -n auto -q -o filterwarnings=default $(QUICK)

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
	$(BIN)/python -m pytest -n 0 tests/browser/test_documentation_in_chromium.py

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
