# Every target sets up what it needs; a second run is fast.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Threads that wait should sleep: spinning costs far more than it gains when the cores are shared.
export OMP_WAIT_POLICY ?= PASSIVE

.DEFAULT_GOAL := help
.PHONY: help setup demo test studio lint format typecheck bench bench-studio clean

help:            ## Show this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## ?/  make \1\t/' | expand -t 20

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (a few minutes the first time) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check "pip>=25.1" -c constraints.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all]" --group dev
	@touch $@

setup: $(READY)  ## Create .venv with the pinned environment

demo: setup      ## Train a small capsule network on a CPU in about a minute and look into it
	@$(BIN)/torchcaps demo

studio: setup    ## Look inside capsule networks in the browser
	@$(BIN)/torchcaps studio

test: setup lint typecheck  ## Lint, type check and run the whole test suite
	@$(BIN)/python -m pytest -n 2

lint: setup      ## Check style
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

format: setup    ## Repair style
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

typecheck: setup ## Check types
	@$(BIN)/mypy

bench: setup     ## Measure speed on this machine, as ratios in one run
	@$(BIN)/python -m benchmarks

bench-studio: setup ## Measure the studio: its page in a browser, its server under load
	@$(BIN)/python -m benchmarks.studio_page
	@$(BIN)/python -m benchmarks.studio --clients 50 --seconds 60

clean:           ## Remove the environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis out
