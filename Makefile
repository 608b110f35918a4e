# Every target creates `.venv` if it is missing and reuses it otherwise.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help venv paper test coverage test-slow test-oldest audit lint format docs bench wheel release clean

help:
	@echo "make paper      run the study (quick settings) and write its report"
	@echo "make test       run the tests"
	@echo "make coverage   run the tests and measure which lines they run, which takes half as long again"
	@echo "make test-slow  run the long statistical tests"
	@echo "make test-oldest  run the tests with the oldest allowed versions, in .venv-oldest"
	@echo "make audit      look for known vulnerabilities in the installed packages"
	@echo "make lint       check style, types and the direction of imports"
	@echo "make format     fix style where ruff can"
	@echo "make docs       build the documentation"
	@echo "make bench      compare verified and approximate evidences (benchmarks/verified.py)"
	@echo "make wheel      build the sdist and the wheel and check them"
	@echo "make release    check, build and tag a release"
	@echo "make clean      remove .venv, caches and builds"

venv: $(VENV)/.dev

$(VENV)/.dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[dev]"
	touch $@

paper: venv
	$(BIN)/sbnn paper --quick --out paper-results

test: venv
	-@$(BIN)/python tests/browser.py
	$(BIN)/python -m pytest -n auto --dist loadfile

coverage: venv
	$(BIN)/python -m pytest -n auto --dist loadfile --cov=sbnn --cov-report=term-missing:skip-covered --cov-fail-under=90

test-slow: venv
	$(BIN)/python -m pytest -m slow

test-oldest:
	$(PYTHON) tools/oldest.py .venv-oldest

audit: venv
	$(INSTALL) pip-audit
	$(BIN)/python -m pip list --format freeze --exclude-editable > $(VENV)/installed.txt
	@$(BIN)/python -m pip_audit --strict --no-deps --disable-pip --requirement $(VENV)/installed.txt || \
	  { echo "audit: a version is vulnerable, or could not be checked because the package index has no" \
	    "data about vulnerabilities; the line above says which. In the second case, audit where PyPI" \
	    "can be reached."; exit 1; }

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: venv
	$(INSTALL) -e ".[docs]"
	$(BIN)/mkdocs build --strict

bench: venv
	$(INSTALL) -e ".[bench]" --constraint benchmarks/constraints.txt
	$(BIN)/python benchmarks/verified.py

wheel: venv
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

release: venv lint
	$(BIN)/python tools/release.py

clean:
	rm -rf $(VENV) .venv-oldest site dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage
