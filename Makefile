# Everything here needs only Python 3.11+, make and a package index. `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
# What pins the versions that are installed: the lock, or `make lowest`.
CONSTRAINT ?= requirements.lock
VENV   ?= .venv
BIN    := $(VENV)/bin
INPUTS := $(shell cat pyproject.toml requirements.lock Makefile | cksum | cut -d' ' -f1)
STAMP  := $(VENV)/.installed-$(INPUTS)
REAL   := $(VENV)/.real-$(INPUTS)
RELEASE := $(VENV)/.release-$(INPUTS)
# Without bytecode each of the many commands that tests start compiles all of Spinney anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit("Spinney needs Python 3.11 or newer; `make PYTHON=python3.12 ...` names another one" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing Spinney and its tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINT) --editable '.[cel,embedded,plan]' --group dev
	@rm -f $(VENV)/.installed-*; touch $@

$(RELEASE): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINT) --group release
	@rm -f $(VENV)/.release-*; touch $@

$(REAL): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINT) --group real
	@rm -f $(VENV)/.real-*; touch $@

.PHONY: install
install: $(STAMP)  ## create .venv and install Spinney into it

.PHONY: demo
demo: $(STAMP)  ## bring a gang up on the embedded cluster and show it
	@$(BIN)/spinney demo

TESTS ?= tests

.PHONY: test
test: $(STAMP)  ## the test suite, on the embedded cluster
	$(BIN)/pytest -q -m "not real and not node and not browser" -n auto --dist loadgroup $(TESTS)

.PHONY: test-backends
test-backends: $(STAMP)  ## every scenario on every backend: the suite leaves out what the operator does alone
	SPINNEY_E2E_EVERY_BACKEND=1 $(BIN)/pytest -q -m "not real" -n auto tests/e2e

.PHONY: test-cases
test-cases: $(STAMP)  ## the behaviour cases in the folder that SPINNEY_CASES names
	$(BIN)/pytest -q tests/sim/cases/test_files.py

SEARCHES := SPINNEY_STORMS=200 SPINNEY_MUTATIONS=20000 SPINNEY_WORLDS=2000 SPINNEY_HISTORIES=500 SPINNEY_GROUPS=10000 \
  SPINNEY_ORACLE_CASES=10000 SPINNEY_REMEDIES=1000 SPINNEY_RESOURCE_HISTORIES=10000 SPINNEY_CHECKPOINT_STORMS=200

.PHONY: searches
searches: $(STAMP)  ## what the suite samples, searched for hours: faults, mutations, worlds, histories
	$(SEARCHES) $(BIN)/pytest -q -m "not real" -n auto -o timeout=0 tests/operator/test_faults.py \
	  tests/operator/test_mutated_workloads*.py \
	  tests/coscheduling/test_composite_preemption.py tests/coscheduling/test_nothing_sleeps.py \
	  tests/coscheduling/test_forgetting.py tests/scheduler/test_oracle.py tests/sim/test_remedies.py \
	  tests/*/test_histories.py tests/scheduler/process/test_checkpoint_storms.py
	$(MAKE) --no-print-directory test-backends
	SPINNEY_EXAMPLES=new $(BIN)/pytest -q -m "not real and not node and not browser" -n auto

.PHONY: lint
lint: $(STAMP)  ## ruff, and the import contract between the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

.PHONY: format
format: $(STAMP)  ## rewrite the source in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python hack/wrap.py

.PHONY: types
types: $(REAL)  ## mypy --strict, the suites for real clusters included
	$(BIN)/mypy

.PHONY: controlplane
controlplane: $(REAL)  ## build what the real suite runs on: Kubernetes 1.35, 1.36 and 1.37, and Helm
	@for minor in 1.37 1.36 1.35; do hack/controlplane/build.sh $$minor >/dev/null || exit 1; done
	@hack/helm/build.sh >/dev/null

.PHONY: test-real
test-real: $(REAL)  ## the suites that claim Kubernetes behaviour, on a real control plane
	$(BIN)/pytest -q -m "real and not operators and not peers" -n 2 --dist loadfile

.PHONY: operators
operators:  ## build the controllers of JobSet, LeaderWorkerSet, Kubeflow, MPI operator, KubeRay, Kueue, Karpenter
	@hack/operators/build.sh >/dev/null

.PHONY: test-operators
test-operators: $(REAL)  ## workloads of other people's controllers as gangs, on a real control plane and the embedded one
	$(BIN)/pytest -q -m operators tests/operators

.PHONY: peers
peers:  ## build KAI, Grove's operator, scheduler-plugins and Volcano (PEERS=dir: from the source archives in it)
	@hack/peers/build.sh >/dev/null

.PHONY: test-peers
test-peers: $(REAL)  ## our backends with the schedulers they were made for, on a real control plane
	$(BIN)/pytest -q -m peers tests/e2e

.PHONY: e2e-node
e2e-node: $(REAL)  ## what ships, on a real Kubernetes node: image, chart and manifests (needs root)
	@hack/real-node check
	$(BIN)/pytest -q -m node tests/node

SEEDS ?= 1000
FROM  ?= 0

.PHONY: storms
storms: $(STAMP)  ## everything fails at once, SEEDS times from seed FROM; prints the line that replays a failure
	$(BIN)/python -m tests.storms --seeds $(SEEDS) --from $(FROM)

BENCHMARKS := objects runtime nodes server scheduler operator coscheduling cli dashboard

.PHONY: bench
bench: $(REAL)  ## every benchmark; each prints a ratio measured in one run
	@for bench in $(BENCHMARKS); do echo "== $$bench"; $(BIN)/python -m "benchmarks.$$bench" || exit 1; done

.PHONY: docs
docs: $(STAMP)  ## regenerate docs/reference, the chart and the dashboard's pictures from the code
	$(BIN)/python hack/reference.py
	$(BIN)/python hack/chart.py
	@if command -v chromium >/dev/null; then $(BIN)/python hack/screenshots.py; \
	  else echo "no Chromium: the dashboard's pictures stay as they are"; fi

.PHONY: docs-site
docs-site: $(STAMP)  ## the pages as a site with search, in site/; a broken link fails
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

.PHONY: web
web: web/node_modules  ## check, test and build the dashboard's page into the package (needs Node 20+)
	cd web && npm run --silent check && npm run --silent lint && npm test --silent
	cd web && npm run --silent build

web/node_modules: web/package-lock.json
	cd web && npm ci --no-audit --no-fund --silent && touch node_modules

.PHONY: test-browser
test-browser: $(STAMP) web/node_modules  ## the dashboard's pages in a real Chromium (needs Chromium and Node 20+)
	SPINNEY_ARTEFACTS=dist/screenshots $(BIN)/pytest -q -m browser tests/dashboard

.PHONY: crds
crds: $(STAMP)  ## regenerate the CRD manifests from the types
	$(BIN)/spinney crds --of all --output deploy/crds

LOCK := $(BIN)/uv pip compile --quiet --upgrade --universal --no-emit-index-url --no-header --python-version 3.11

.PHONY: lock
lock: $(STAMP)  ## refresh the three lock files from the ranges in pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(LOCK) --group dev --group real --group release --all-extras pyproject.toml --output-file requirements.lock
	$(LOCK) --constraint requirements.lock --generate-hashes --extra cel pyproject.toml --output-file requirements.image.lock
	$(LOCK) --constraint requirements.lock --generate-hashes --group build --output-file requirements.build.lock

.PHONY: lowest
lowest:  ## the suite with the lowest versions that pyproject.toml allows, in .venv-lowest
	@$(PYTHON) hack/lowest.py > .lowest.lock
	@$(MAKE) --no-print-directory VENV=.venv-lowest CONSTRAINT=.lowest.lock test

.PHONY: coverage
coverage: $(RELEASE)  ## the test suite, and which lines it never ran
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -m "not real and not node and not browser" -n auto
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

.PHONY: package
package: $(RELEASE)  ## build what is published, into dist, and check it
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz

TAG ?= $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

.PHONY: version-check
version-check:  ## say whether package, chart and CHANGELOG are of one version, that of TAG where it is given
	@for file in 'pyproject.toml:version = "$(TAG:v%=%)"' 'deploy/helm/spinney/Chart.yaml:version: $(TAG:v%=%)' 'deploy/helm/spinney/Chart.yaml:appVersion: $(TAG:v%=%)' \
	  'CHANGELOG.md:## $(TAG:v%=%) '; do \
	  sed 's/$$/ /' "$${file%%:*}" | grep -qF "$${file#*:}" \
	    || { echo "$${file%%:*} does not say: $${file#*:}"; exit 1; }; done

.PHONY: base
base:  ## pin the base image of the Containerfile by the digest its registry gives now
	@$(PYTHON) hack/base.py

.PHONY: base-check
base-check:  ## say whether the base image is pinned by its digest; a release needs it
	@$(PYTHON) hack/base.py --check

.PHONY: sbom
sbom: $(RELEASE)  ## list what is in the image, into dist/sbom.cyclonedx.json
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/sbom.cyclonedx.json requirements.image.lock

.PHONY: audit
audit: $(RELEASE)  ## look for known weaknesses of what is in the image
	$(BIN)/python hack/audit.py requirements.image.lock

ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.7

.PHONY: workflows
workflows:  ## check the GitHub workflows with actionlint (needs Go)
	go run $(ACTIONLINT) -color

.PHONY: clean
clean:  ## remove .venv, caches and what was built
	rm -rf $(VENV) .venv-lowest .lowest.lock dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
