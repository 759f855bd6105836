# Each target works on a fresh machine with Python, gcc and make: it makes its own .venv first.

PYTHON ?= python3
BIN := .venv/bin
LISTED = $(shell $(PYTHON) -c "import ast; t = ast.parse(open('setup.py').read()); \
	print(*('src/' + n.value.replace('.', '/') + '.py' for a in t.body if isinstance(a, ast.Assign) \
	and a.targets[0].id == '$(1)' for n in a.value.elts))")
KERNELS := $(call LISTED,KERNELS)
FACES := $(call LISTED,FACES)
TESTS ?= tests
PYTEST := $(BIN)/pytest --numprocesses auto --dist worksteal

.PHONY: install demo lint lint-scripts test test-compiled test-interpreted test-whole test-lowest test-pythons test-all test-long soak bench bench-long speed pictures drawings wheel docs man peers corpus clean

install: .venv/installed

.venv/dependencies: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

.venv/installed: .venv/dependencies setup.py $(KERNELS) $(FACES) $(shell find src -name '*.pxd')
	find src -name '*.so' -delete
	$(BIN)/python -m pip install --quiet --editable .
	@for kernel in $(KERNELS:.py=); do \
		ls $$kernel.*.so >/dev/null 2>&1 || echo "$$kernel.py is not compiled and runs interpreted"; done
	touch $@

demo: install
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tools/demo.sh

lint: install .venv/node
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/words.py
	@if PATH="$(CURDIR)/$(BIN):$$PATH" npm --version >/dev/null 2>&1; then $(MAKE) --no-print-directory lint-scripts; \
	else echo "npm is not there: the scripts of pages were not checked"; test "$$WALKBACK_PEERS" != required; fi

.venv/node: .venv/dependencies
	$(BIN)/python -m pip install --quiet --group scripts
	touch $@

# The scripts of pages, and the public names as pyright sees them, by programs of npm.
lint-scripts: export PATH := $(CURDIR)/$(BIN):$(PATH)
lint-scripts: tools/js/node_modules/installed
	tools/js/node_modules/.bin/tsc --project tools/js
	tools/js/node_modules/.bin/eslint --config tools/js/eslint.config.js --max-warnings 0 src tools/*.js
	tools/js/node_modules/.bin/prettier --config tools/js/.prettierrc.json --log-level warn --check \
		'src/**/*.js' 'src/**/*.d.ts' 'tools/*.js' 'tools/js/*.js'
	tools/js/node_modules/.bin/pyright --pythonpath $(BIN)/python tests/publicprogram.py

tools/js/node_modules/installed: export PATH := $(CURDIR)/$(BIN):$(PATH)
tools/js/node_modules/installed: .venv/dependencies tools/js/package-lock.json tools/js/.npmrc
	cd tools/js && npm ci --silent
	touch $@

# What a fresh machine can run in five minutes; tests/always.toml has what it must not lose.
test: install
	WALKBACK_TESTS=quick $(PYTEST) --interpreted $(TESTS)
	WALKBACK_TESTS=quick WALKBACK_COMPILED=required $(PYTEST) $(TESTS)

test-compiled: install
	WALKBACK_COMPILED=required $(PYTEST) $(TESTS)

test-interpreted: install
	$(PYTEST) --interpreted $(TESTS)

test-interpreted-peers: install peers
	$(PYTEST) --interpreted -m peers $(TESTS)

test-whole: export WALKBACK_PEERS = required
test-whole: peers test-interpreted test-compiled

# The services of objects that stores in buckets are tested with.
.venv/cloud: export PATH := $(CURDIR)/$(BIN):$(PATH)
.venv/cloud: .venv/dependencies .venv/node tools/cloud/package-lock.json tools/cloud/.npmrc
	$(BIN)/python -m pip install --quiet --group cloud
	cd tools/cloud && npm ci --silent
	touch $@

.cache/sdist: .venv/installed MANIFEST.in $(shell git ls-files 2>/dev/null)
	rm -rf $@
	$(BIN)/python setup.py --quiet sdist --dist-dir $@

# All tests with the oldest dependencies that pyproject.toml allows, compiled with them from the source distribution. While
# one waits, for a service or for a program to stop, another can run.
test-lowest: .venv-lowest/installed
	WALKBACK_COMPILED=required .venv-lowest/bin/pytest --numprocesses $$(($$(nproc) + 1)) --dist worksteal $(TESTS)

.venv-lowest/installed: tools/lowest.txt .cache/sdist
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip
	WALKBACK_CFLAGS="-O1 -g0" PIP_CONSTRAINT=tools/lowest.txt PIP_BUILD_CONSTRAINT=tools/lowest.txt .venv-lowest/bin/python -m pip install --quiet .cache/sdist/*.tar.gz --group dev --group cloud
	touch $@

# The files of real assemblers and linkers that tests compare on; the first test that wants them would make them, too.
corpus: install peers
	$(BIN)/python tests/corpus.py

# Verbs and formats with the newest dependencies, on each newer Python that `make peers` brings.
test-pythons: peers .cache/sdist
	$(BIN)/python tools/pythons.py

# What a change must pass besides `make test`, which runs with the newest dependencies: of each test's parameters, a
# third.
# What is installed comes first, one after the other; then what keeps one processor busy goes side by side.
test-all: export WALKBACK_PEERS = required
test-all: export WALKBACK_TESTS = change
test-all: .venv/node .venv/cloud .venv/docs tools/js/node_modules/installed install
	$(MAKE) --no-print-directory --jobs 2 --output-sync lint peers docs corpus
	$(MAKE) --no-print-directory test-interpreted-peers test-lowest test-pythons

# What takes too long for every change.
test-long: install peers docs test-whole
	WALKBACK_TESTS=long WALKBACK_PEERS=required $(BIN)/pytest $(TESTS)

soak: install
	WALKBACK_SOAK=100000 $(BIN)/pytest -m "kernel or soak" -k "hostile" $(TESTS)
	WALKBACK_STOPS=100 WALKBACK_SAMPLES=5000 WALKBACK_KILLS=100 $(BIN)/pytest -k "peers or survival" tests/live

# Beside the peers; with AGAINST="REVISION..." beside older revisions of this project.
bench: install $(if $(AGAINST),,peers)
	$(BIN)/python bench/$(if $(AGAINST),against.py $(AGAINST),run.py)

# What takes too long for that: a store of a month with 10^9 samples.
bench-long: install
	$(BIN)/python bench/months.py

# Nothing may be slower, or take more memory, than the revision that bench/reference names.
speed: install
	$(BIN)/python bench/against.py

# What is published, checked; and the demonstration from the wheel alone, in an environment that has nothing else.
wheel: .venv/release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet dist/*.whl
	PATH="$(CURDIR)/.venv-wheel/bin:$$PATH" sh tools/demo.sh

.venv/release: .venv/dependencies
	$(BIN)/python -m pip install --quiet --group release
	touch $@

# Man pages, from the same source as the help of the command.
man: install
	$(BIN)/python tools/man.py build/man

# The site, for a folder or a server; a warning is an error.
docs: .venv/docs install
	rm -rf build/docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky --fresh-env --jobs auto \
		--doctree-dir build/doctrees docs build/docs

.venv/docs: .venv/dependencies
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

# The pictures in the documents, of programs of this machine.
pictures: install peers
	$(BIN)/python tools/pictures.py

# What the documents show of code and formats, from the source.
drawings: install
	$(BIN)/python tools/drawings.py

peers: .venv/cloud
	$(PYTHON) tools/peers.py

clean:
	rm -rf .venv .venv-lowest .venv-wheel dist .cache build tools/js/node_modules tools/cloud/node_modules
	find src -name '*.so' -delete
