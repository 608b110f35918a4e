# Every target creates `.venv` when it is missing and reuses it when it is there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help venv paper test test-slow lint format docs bench clean

help:
	@echo "make paper      set everything up and run the study (quick settings, HTML report)"
	@echo "make test       set everything up and run the tests"
	@echo "make test-slow  the long checks of statistical truth"
	@echo "make lint       ruff, mypy and the direction of imports"
	@echo "make docs       build the documentation"
	@echo "make bench      set up the benchmark environment and run benchmarks/verified.py"

venv: $(VENV)/.dev

$(VENV)/.dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

paper: venv
	$(BIN)/sbnn paper --quick --out paper-results

test: venv
	-@$(BIN)/python tests/browser.py
	$(BIN)/python -m pytest -n auto --dist loadfile --cov=sbnn --cov-report=term-missing:skip-covered --cov-fail-under=90

test-slow: venv
	$(BIN)/python -m pytest -m slow

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	$(BIN)/mkdocs build --strict

bench: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	$(BIN)/python benchmarks/verified.py

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .coverage
