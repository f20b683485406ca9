# Needs Python 3.11 to 3.13 with pip and venv. `make help` lists the targets.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
INSTALLED := $(VENV)/.installed

SAMPLE := eval/assets/sample/de-en/de-en.training
DEMO_PAIRS := demo/pairs.jsonl
SHOW_PAIRS := import itertools, json, sys; \
	[print("%.3f\t%s\t%s" % (pair["probability"], pair["source_text"], pair["target_text"])) \
	for pair in map(json.loads, itertools.islice(open(sys.argv[1], encoding="utf-8"), 8))]

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo docs test clusters check lint types pytest coverage format dist image clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Install everything into .venv (again only when the requirements change)

PIP_INSTALL = $(BIN)/python -m pip install -qq --constraint constraints.txt --editable

$(BASE): pyproject.toml setup.py constraints.txt
	@echo "installing the base into $(VENV) (about half a minute the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) .
	@touch $@

$(INSTALLED): pyproject.toml setup.py constraints.txt
	@echo "installing everything into $(VENV) (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) '.[dev]'
	@touch $(BASE) $@

demo: $(BASE) ## Mine the bundled sample, show the best pairs, score them
	@mkdir -p $(dir $(DEMO_PAIRS))
	$(BIN)/adit mine $(SAMPLE).de $(SAMPLE).en -o $(DEMO_PAIRS)
	@echo; echo "The best pairs: probability, source, target"
	@$(BIN)/python -c '$(SHOW_PAIRS)' $(DEMO_PAIRS)
	@echo
	$(BIN)/adit score $(DEMO_PAIRS) --gold $(SAMPLE).gold

docs: $(BIN)/mkdocs ## Build the documents as a site, build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "$$(find build/site -name '*.html' | wc -l) pages: build/site/index.html"

$(BIN)/mkdocs: # if `make install` has not been called
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) '.[docs]'

test: $(INSTALLED) ## Install, then run linters, types and tests
	@$(MAKE) --no-print-directory check

# mypy computes in one process: tests take the other cores meanwhile.
check: lint ## Linters, types and tests; CI adds those marked slow
	@$(MAKE) --no-print-directory -j 2 types pytest

lint: $(INSTALLED)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet

types: $(INSTALLED)
	@$(BIN)/mypy --no-error-summary

# CI gives -rs alone: all tests, and the reason of each that is skipped.
PYTEST_FLAGS ?= -m "not slow"

# Each process begins with half of the tests, in order: what a module's tests share is made once.
IN_PROCESSES := --numprocesses auto --dist worksteal

# Each of pytest's processes computes on one thread: together they fill the cores.
pytest coverage: export OMP_NUM_THREADS = 1

# Without the compiled modules of the first, each process that tests start compiles them again.
pytest coverage: export PYTHONDONTWRITEBYTECODE =

pytest: $(INSTALLED)
	@$(BIN)/python -m pytest $(IN_PROCESSES) --quiet $(PYTEST_FLAGS)

coverage: $(INSTALLED) ## Tests with line coverage
	@$(BIN)/python -m pytest $(IN_PROCESSES) --quiet $(PYTEST_FLAGS) --cov --cov-report=term

clusters: export OMP_NUM_THREADS = 1
clusters: $(INSTALLED) ## Start Flink, Spark and Prism here, run the graph on them, end them
	@$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup --quiet -rs \
		-m clusters tests/clusters

format: $(INSTALLED) ## Sort imports, mend what ruff can, format
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format --quiet

dist: $(INSTALLED) ## Build the wheel and the sdist into dist/
	@rm -rf build dist && mkdir build
	@$(BIN)/python -m build --outdir dist >build/log 2>&1 || { cat build/log; exit 1; }
	@ls dist

# The container engine that answers, and what its build is called with besides.
ENGINE ?= $(shell for engine in docker podman; do \
	$$engine info >/dev/null 2>&1 && echo $$engine && break; done)
IMAGE ?= adit-worker
IMAGE_FLAGS ?=

image: ## Build the image of a cluster's workers, adit-worker, with Docker or podman
	$(if $(ENGINE),,$(error no container engine answers: start Docker, or install podman))
	$(ENGINE) build -f docker/worker.Dockerfile -t $(IMAGE) $(IMAGE_FLAGS) .

clean: ## Remove everything that these targets make, .venv apart
	@rm -rf build dist demo *.egg-info .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache \
		.ruff_cache
	@find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
