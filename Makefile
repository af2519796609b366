# Every target sets up what it needs; a second run is fast.
PYTHON ?= python3
VENV   := .venv
LOWEST := .venv-lowest
NODE   := studio-web/node_modules
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# Threads that wait should sleep: spinning costs far more than it gains when the cores are shared.
export OMP_WAIT_POLICY ?= PASSIVE

.DEFAULT_GOAL := help
.PHONY: help setup demo test studio page browser lint format typecheck lowest bench bench-studio clean

help:            ## Show this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## ?/  make \1\t/' | expand -t 20

$(READY): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (a few minutes the first time) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check "pip>=25.1" -c constraints.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e ".[all]" --group dev
	@touch $@

setup: $(READY)  ## Create .venv with the pinned environment

demo: setup      ## Train a small capsule network on a CPU in about a minute and look into it
	@$(BIN)/torchcaps demo

studio: setup    ## Look inside capsule networks in the browser
	@$(BIN)/torchcaps studio

test: setup      ## Lint, type check and run the whole test suite
	@$(MAKE) --no-print-directory -j 3 --output-sync lint typecheck browser
	@$(BIN)/python -m pytest -n 2 --dist worksteal

# The tests of the studio's page need a browser and Node.js; where they cannot be had, those tests say so and are skipped.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && echo "Installing chromium ..." && apt-get update -qq >/dev/null 2>&1 \
	  && apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; } || true
	@command -v npm >/dev/null && $(MAKE) --no-print-directory $(NODE) || true

$(NODE): studio-web/package-lock.json
	@cd studio-web && npm ci --silent --no-audit --no-fund && touch node_modules

page: $(NODE)    ## Build the studio's page from its TypeScript
	@cd studio-web && npm run check && npm test && npm run build

lint: setup      ## Check style
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

format: setup    ## Repair style
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

typecheck: setup ## Check types
	@$(BIN)/mypy

# Old versions warn of each other, so warnings are no errors here.
lowest:          ## Run the tests with the oldest libraries that are allowed (downloads gigabytes)
	@$(PYTHON) -m venv $(LOWEST) && $(LOWEST)/bin/pip install --quiet --disable-pip-version-check uv
	@$(LOWEST)/bin/uv pip compile --quiet --resolution lowest-direct --extra all -o $(LOWEST)/versions.txt pyproject.toml
	@$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST) -c $(LOWEST)/versions.txt -e ".[all]" --group dev httpx
	@PYTEST_ADDOPTS="-o filterwarnings=default" $(LOWEST)/bin/python -m pytest -n 2

bench: setup     ## Measure speed on this machine, as ratios in one run
	@$(BIN)/python -m benchmarks

bench-studio: setup ## Measure the studio: its page in a browser, its server under load
	@$(BIN)/python -m benchmarks.studio_page
	@$(BIN)/python -m benchmarks.studio --clients 50 --seconds 60

clean:           ## Remove the environment and caches
	@rm -rf $(VENV) $(LOWEST) $(NODE) .pytest_cache .mypy_cache .ruff_cache .hypothesis out
