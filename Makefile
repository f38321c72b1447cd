# Palaver: each target sets up everything it needs, and costs nothing when nothing changed.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run test test-all test-long test-tools attacks lint bench pictures profile clean venv web

PYTHON := .venv/bin/python
PACKAGES := .venv/.packages
INSTALLED := .venv/.installed
NODE_PACKAGES := web/node_modules/.package-lock.json
PAGE := src/palaver/web_dist/index.html

CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Many tests wait for programs, so one more at once than there are cores wastes nothing.
WORKERS ?= $(shell echo $$(( $(CORES) + 1 )))
# Directories are listed too: their time changes when a file in them is removed.
PAGE_SOURCES := $(shell find web/src web/public web/index.html web/vite.config.ts web/tsconfig.json 2>/dev/null)

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: $(INSTALLED) $(PAGE) ## Start Palaver and open its page (PALAVER_HOST, PALAVER_PORT, PALAVER_DATA, PALAVER_NO_OPEN=1).
	@scripts/model.sh
	@exec .venv/bin/palaver serve

test: test-tools ## Run the tests: Python, the page, and both together in a real Chromium.
	@rm -f .second-try
	@scripts/pytest.sh tests -m "not long" --workers $(WORKERS)
	@echo "Testing the page …"
	@scripts/npm.sh run --silent test
	@scripts/second_try.sh

test-all: test test-long ## Run these and the long ones: the whole matrix of the agent programs, and the long campaigns.

test-long: test-tools
	@scripts/pytest.sh tests -m long --workers $(WORKERS)
	@scripts/second_try.sh

attacks: test-tools ## Run the attacks as root and as an ordinary user, with each sandbox alone and with none, and print the table.
	@scripts/attacks.sh -m "not browser and not cli" --workers $(WORKERS)

# What tests need beside the packages. Where a browser or a program cannot be had, its tests are left out and say so.
test-tools: $(INSTALLED) $(PAGE)
	@scripts/bubblewrap.sh
	@scripts/model.sh
	@scripts/programs.sh
	@scripts/chromium.sh light || [ $$? = 1 ]

profile: test-tools ## Say where the time of the tests goes: by phase, folder, file, test and fixture.
	@env -u PYTHONDONTWRITEBYTECODE $(PYTHON) -m scripts.suite_profile tests -q -m "not long" --workers $(WORKERS)

lint: $(INSTALLED) $(NODE_PACKAGES) ## Check style, types, layers and generated files; the only definition of clean.
	@scripts/lint.sh

bench: $(INSTALLED) $(PAGE) ## Measure the numbers we promise and print them as a table.
	@$(PYTHON) -m bench

pictures: $(INSTALLED) $(PAGE) ## Take the pictures of the documentation anew, in a real Chromium and a real terminal.
	@scripts/pictures.sh

clean: ## Remove everything the other targets made.
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .second-try dist build
	@rm -rf web/node_modules tests/cli/npm/node_modules src/palaver/web_dist
	@find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The steps behind the targets. Each leaves a file whose time tells make whether to do it again.

venv: $(INSTALLED)

web: $(PAGE)

.venv/.uv: scripts/venv.sh
	@scripts/venv.sh
	@touch $@

$(PACKAGES): .venv/.uv requirements.lock
	@echo "Fetching Python packages (about 150 MB the first time) …"
	@scripts/pip.sh install --require-hashes -r requirements.lock
	@touch $@

# Editable, and built with the packages above: nothing to fetch, no page to build.
$(INSTALLED): $(PACKAGES) pyproject.toml hatch_build.py
	@echo "Installing Palaver into .venv …"
	@scripts/pip.sh install --no-deps --no-build-isolation -e .
	@touch $@

$(NODE_PACKAGES): web/package-lock.json | $(PACKAGES)
	@echo "Fetching the page's packages …"
	@scripts/npm.sh ci --silent
	@touch $@

$(PAGE): $(NODE_PACKAGES) $(PAGE_SOURCES)
	@echo "Building the page …"
	@scripts/npm.sh run --silent build -- --logLevel warn
