# `make help` lists the commands. docs/operations.md describes how to operate the service.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHOP_API := $(BIN)/shop-api
SPECTRAL := tests/lint/node_modules
NPM_CI := npm ci --loglevel=error --no-audit --no-fund --fetch-retries=0
# uv installs in seconds. It does not read the configuration of pip, which is used if uv is missing or fails.
UV := $(shell command -v uv)
# uv trusts the certificates of the system, too, as pip does.
export UV_NATIVE_TLS ?= 1
PIP := $(BIN)/python -m pip --disable-pip-version-check
# A process for each CPU, but two to four. The tests that `make test` omits wait for servers and timers,
# so two more run them. Each process collects all tests, which takes five seconds. A process without
# remaining tests takes over tests of other processes.
PROCESSES := $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 2 ? 2 : n > 4 ? 4 : n)))
# PYTHONDONTWRITEBYTECODE would make each process compile all tests again, which takes half of a minute.
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist worksteal
MORE := $(shell echo $$(($(PROCESSES) + 2)))
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --upgrade

# Install the packages of a lock file. pip is quiet, or shows a progress bar on a terminal. Warnings are not shown.
# --use-pep517: older versions of pip print a deprecation warning for packages without a wheel.
define install
	@all=$$(grep -c == $(1)); lock="--require-hashes -r $(1)"; \
	if [ -n "$(UV)" ]; then \
		echo "Installing $$all locked packages into $(VENV) with uv ..."; \
		"$(UV)" pip install --quiet --python $(BIN)/python $$lock 2>$(VENV)/uv.log && exit; \
		echo "uv has failed ($(VENV)/uv.log)."; \
	fi; \
	echo "Installing $$all locked packages into $(VENV) with pip. This takes a minute or two, with uv a few seconds ..."; \
	if ! [ -t 1 ]; then $(PIP) install --quiet --quiet --use-pep517 $$lock; exit; fi; \
	rm -f $(VENV)/failed; \
	{ $(PIP) install --use-pep517 $$lock 2>$(VENV)/pip.log || touch $(VENV)/failed; } | { \
		number=0; bar=; \
		while read -r word rest; do \
			case $$word in Collecting | Processing | Requirement) number=$$((number + 1)) ;; Installing) rest=", installing them" ;; *) continue ;; esac; \
			while [ $${#bar} -lt $$((number * 40 / all)) ]; do bar="$$bar="; done; \
			printf '\r[%-40s] %d of %d%s' "$$bar" $$number $$all "$$(echo "$$rest" | grep ^,)"; \
		done; echo; \
	}; \
	! rm $(VENV)/failed 2>/dev/null || { cat $(VENV)/pip.log; exit 1; } >&2
endef

.DEFAULT_GOAL := help
.PHONY: help setup run demo test test-all test-list test-rest histories cluster cluster-test bench bench-quick lint lint-types lint-style lint-security lint-document audit lint-openapi docs screenshots translations openapi clients openapi-diff lock clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/ready $(BIN)/shop-api ## install the locked dependencies into .venv

run: setup $(VENV)/guides ## migrate the database and start the server and a worker; the first run prints a key
	@$(SHOP_API) serve

demo: setup ## fill the database with the data of a demo shop; prints a key
	@$(SHOP_API) db upgrade
	@$(SHOP_API) demo --customers 1000 --coupons 200 --orders 3000 --seed 1

test: $(VENV)/ready-dev $(BIN)/shop-api ## run the quick tests on SQLite and PostgreSQL, in a few minutes; ARGS=tests/cli/test_config.py
	@$(PYTEST) $(ARGS)

test-all: $(VENV)/ready-dev $(BIN)/shop-api ## run all tests, including the slow ones, each on both databases, as CI does
	@$(PYTEST) --numprocesses $(MORE) --all $(ARGS)

test-list: $(VENV)/ready-dev ## list what test deselects, and why; ARGS=-v lists each test
	@$(BIN)/python -m pytest --list-rest --no-header $(ARGS)

test-rest: $(VENV)/ready-dev $(BIN)/shop-api ## run only the tests that test-all runs in addition to test
	@$(PYTEST) --numprocesses $(MORE) --rest $(ARGS)

histories: $(VENV)/ready-dev ## record what concurrent clients see, with faults, and check each operation; ARGS=--help
	@$(BIN)/python -m qa.histories $(ARGS)

cluster: $(VENV)/ready-dev ## run PostgreSQL with two standbys, PgBouncer, two services and a worker until Ctrl-C
	@$(BIN)/python -m qa.cluster start

cluster-test: $(VENV)/ready-dev ## demonstrate replicas, upgrades and failover; writes docs/demonstrations.md; ARGS="--seed 7"
	@$(BIN)/python -m qa.cluster test $(ARGS)

bench: $(VENV)/ready-dev ## measure the performance with up to a million rows (25 minutes) and write docs/performance.md
	@$(BIN)/python -m qa.bench

bench-quick: $(VENV)/ready-dev ## measure the performance without the large shops (6 minutes); writes nothing
	@$(BIN)/python -m qa.bench --quick

# Two at a time: the types take as long as the others together.
lint: $(VENV)/ready-dev ## check style and types
	@$(MAKE) --silent --jobs 2 --output-sync lint-types lint-style lint-security lint-document

lint-style: $(VENV)/ready-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

lint-types: $(VENV)/ready-dev
	@$(BIN)/mypy

lint-security: $(VENV)/ready-dev
	@$(BIN)/bandit --quiet --configfile pyproject.toml --recursive app migrations server wsgi.py gunicorn.conf.py

lint-document: $(VENV)/ready-dev
	@if $(MAKE) --silent $(SPECTRAL)/installed.json; then $(MAKE) --silent lint-openapi; \
		else echo "The OpenAPI document was not checked, for the reason above. The check needs Node.js and packages from npm."; fi

lint-openapi: $(VENV)/ready-dev $(SHOP_API) $(SPECTRAL)/installed.json ## check both versions of the OpenAPI document (needs Node.js)
	@for version in 3.1.0 3.0.3; do \
		SHOP_OPENAPI_VERSION=$$version $(SHOP_API) openapi write $(VENV)/openapi-$$version.json || exit 1; \
	done
	@$(SPECTRAL)/.bin/spectral lint --quiet --fail-severity=hint --ruleset tests/lint/.spectral.yaml \
		$(VENV)/openapi-3.1.0.json $(VENV)/openapi-3.0.3.json
	@echo "The OpenAPI document: no errors, no warnings"

# The first run and a change of the guides build their site. Without its packages, the service shows plain pages.
$(VENV)/guides: mkdocs.yml CHANGELOG.md CONTRIBUTING.md $(wildcard docs/*) | setup
	@echo "Building the guides ..."
	@$(MAKE) --silent docs >$(VENV)/guides.log 2>&1 || \
		echo "The guides are plain pages, because their site could not be built ($(VENV)/guides.log)."
	@touch $@

# The packages for development include those of the site.
docs: $(VENV)/ready-$(if $(wildcard $(VENV)/ready-dev),dev,docs) ## build the documentation site into app/site and check its links
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean
	@echo "The pages are in app/site. A service that starts now shows them at /docs/guides/"

screenshots: $(VENV)/ready-dev ## write the pictures of the admin pages to docs/ (needs Chromium)
	@$(BIN)/python tools/screenshots.py > /dev/null 2>&1

TRANSLATIONS := app/plugins/admin/translations
PYBABEL := PYTHONPATH=. $(BIN)/pybabel --quiet

translations: $(VENV)/ready-dev ## collect the texts of the admin pages, update their translations, and compile them
	$(PYBABEL) extract --mapping tools/babel.cfg --no-location --sort-output --output $(TRANSLATIONS)/admin.pot app/plugins/admin
	$(PYBABEL) update --domain admin --no-fuzzy-matching --ignore-obsolete --ignore-pot-creation-date --width 100 \
		--input-file $(TRANSLATIONS)/admin.pot --output-dir $(TRANSLATIONS)
	rm $(TRANSLATIONS)/admin.pot
	$(PYBABEL) compile --domain admin --directory $(TRANSLATIONS)

openapi: setup ## write openapi.json, and in docs the commands and the tables of operations and settings
	@$(SHOP_API) openapi write openapi.json
	@PYTHONPATH=. $(BIN)/python tools/generated_pages.py

# What is generated is not in the repository: it follows from openapi.json, and the packages contain it.
clients: $(VENV)/ready-dev ## generate the client packages in clients/ from openapi.json, and build them (needs Node.js)
	@cd clients/python && PATH="$(abspath $(BIN)):$$PATH" && rm -rf dist && \
		openapi-python-client generate --path ../../openapi.json --output-path shop_api_client/generated \
			--meta none --overwrite --fail-on-warning && hatchling build
	@cd clients/typescript && rm -rf dist *.tgz && $(NPM_CI) && npm pack --silent

# --strict: fail if a package is missing from the index, instead of treating it as safe.
audit: $(VENV)/ready-dev ## check the locked dependencies for known vulnerabilities (needs PyPI)
	@for lock in requirements.txt requirements-dev.txt; do \
		$(BIN)/uv tool run --quiet pip-audit --strict --progress-spinner off --require-hashes --disable-pip \
			-r $$lock || exit 1; \
	done

BASE ?= HEAD
openapi-diff: $(BIN)/python ## list breaking and additive changes of openapi.json since BASE, a revision (HEAD) or a file
	@$(BIN)/python tools/openapi_diff.py $(BASE)

lock: $(VENV)/ready-dev ## upgrade the locked dependencies to the newest versions that pyproject.toml allows
	$(COMPILE) pyproject.toml --output-file requirements.txt
	$(COMPILE) pyproject.toml --extra dev --constraint requirements.txt --output-file requirements-dev.txt
	echo mkdocs-material | $(COMPILE) - --constraint requirements-dev.txt --output-file requirements-docs.txt

clean: ## remove installed files and caches; keeps the data in instance/
	rm -rf $(VENV) $(SPECTRAL) .pytest_cache .mypy_cache .ruff_cache .hypothesis app/site
	rm -rf tests/browser/node_modules tests/clients/typescript/node_modules tests/clients/legacy/node_modules tests/clients/generators/node_modules tests/clients/mcp/node_modules
	rm -rf clients/python/dist clients/python/shop_api_client/generated
	rm -rf clients/typescript/node_modules clients/typescript/dist clients/typescript/src/schema.ts

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is required. Select an interpreter with: make PYTHON=python3.12"; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version) ..."
	@{ [ -n "$(UV)" ] && "$(UV)" venv --quiet --seed --python "$$(command -v $(PYTHON))" $(VENV) 2>/dev/null; } || \
		$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "Python's venv module is required (Debian: apt install python3-venv)."; exit 1; }

# Each lock file has a stamp file, so that dependencies are installed only when the lock file changes.
$(VENV)/ready: requirements.txt | $(BIN)/python
	$(call install,requirements.txt)
	@touch $@

# The console script, which runs the code of this folder. An editable install needs no site.
$(BIN)/shop-api: export HATCH_BUILD_NO_HOOKS := true
$(BIN)/shop-api: pyproject.toml | $(VENV)/ready
	@{ [ -n "$(UV)" ] && "$(UV)" pip install --quiet --python $(BIN)/python --no-deps --editable . 2>$(VENV)/uv.log; } || \
		$(PIP) install --quiet --no-deps --editable .
	@touch $@

# A copy of the lock file, as tests/npm.py leaves it, so that the tests do not install again.
$(SPECTRAL)/installed.json: tests/lint/package-lock.json
	@command -v npm >/dev/null || { echo "npm is not installed (Debian: apt install npm)." >&2; exit 1; }
	@$(NPM_CI) --prefix tests/lint >/dev/null
	@cp $< $@

$(VENV)/ready-docs: requirements-docs.txt | $(BIN)/python
	$(call install,requirements-docs.txt)
	@touch $@

$(VENV)/ready-dev: requirements-dev.txt | $(VENV)/ready
	$(call install,requirements-dev.txt)
	@touch $@
