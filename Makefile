# Everything here needs only Python 3.11+, make and a package index. `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed-$(shell cat pyproject.toml requirements.lock Makefile | cksum | cut -d' ' -f1)
REAL   := $(VENV)/.real-$(shell cat pyproject.toml requirements.lock Makefile | cksum | cut -d' ' -f1)

.PHONY: help
help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit("Spinney needs Python 3.11 or newer; `make PYTHON=python3.12 ...` names another one" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing Spinney and its tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[cel]' --group dev
	@rm -f $(VENV)/.installed-*; touch $@

$(REAL): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock --group real
	@rm -f $(VENV)/.real-*; touch $@

.PHONY: install
install: $(STAMP)  ## create .venv and install Spinney into it

.PHONY: demo
demo: $(STAMP)  ## bring a gang up on the embedded cluster and show it
	@$(BIN)/spinney demo

.PHONY: test
test: $(STAMP)  ## the test suite, on the embedded cluster
	$(BIN)/pytest -q -m "not real" -n auto

.PHONY: test-cases
test-cases: $(STAMP)  ## the behaviour cases in the folder that SPINNEY_CASES names
	$(BIN)/pytest -q tests/sim/cases/test_files.py

.PHONY: lint
lint: $(STAMP)  ## ruff, and the import contract between the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

.PHONY: format
format: $(STAMP)  ## rewrite the source in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: types
types: $(REAL)  ## mypy --strict, the suites for real clusters included
	$(BIN)/mypy

.PHONY: controlplane
controlplane: $(REAL)  ## build what the real suite runs on: Kubernetes 1.35, 1.36 and 1.37, and Helm
	@for minor in 1.37 1.36 1.35; do hack/controlplane/build.sh $$minor >/dev/null || exit 1; done
	@hack/helm/build.sh >/dev/null

.PHONY: test-real
test-real: $(REAL)  ## the suites that claim Kubernetes behaviour, on a real control plane
	$(BIN)/pytest -q -m real -n 2 --dist loadfile

BENCHMARKS := objects runtime nodes server scheduler operator coscheduling cli

.PHONY: bench
bench: $(REAL)  ## every benchmark; each prints a ratio measured in one run
	@for bench in $(BENCHMARKS); do echo "== $$bench"; $(BIN)/python -m "benchmarks.$$bench" || exit 1; done

.PHONY: docs
docs: $(STAMP)  ## regenerate docs/reference and the chart from the code
	$(BIN)/python hack/reference.py
	$(BIN)/python hack/chart.py

.PHONY: crds
crds: $(STAMP)  ## regenerate the CRD manifests from the types
	$(BIN)/spinney crds --of all --output deploy/crds

.PHONY: lock
lock: $(STAMP)  ## refresh requirements.lock from the ranges in pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --no-emit-index-url --no-header --python-version 3.11 \
	  --group dev --group real --all-extras pyproject.toml --output-file requirements.lock

.PHONY: clean
clean:  ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
