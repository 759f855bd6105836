# Each target works on a fresh machine with Python, gcc and make: it makes its own .venv first.

PYTHON ?= python3
BIN := .venv/bin
KERNELS := $(shell $(PYTHON) -c "import ast; t = ast.parse(open('setup.py').read()); \
	print(*('src/' + n.value.replace('.', '/') + '.py' for a in t.body if isinstance(a, ast.Assign) \
	and a.targets[0].id == 'KERNELS' for n in a.value.elts))")
TESTS ?= tests

.PHONY: install demo lint test test-compiled test-interpreted soak bench peers clean

install: .venv/installed

.venv/dependencies: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

.venv/installed: .venv/dependencies setup.py $(KERNELS) $(shell find src -name '*.pxd')
	$(BIN)/python -m pip install --quiet --editable .
	@for kernel in $(KERNELS:.py=); do \
		ls $$kernel.*.so >/dev/null 2>&1 || echo "$$kernel.py is not compiled and runs interpreted"; done
	touch $@

demo: install
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tools/demo.sh

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test-compiled: install
	WALKBACK_COMPILED=required $(BIN)/pytest $(TESTS)

test-interpreted: install
	$(BIN)/pytest --interpreted $(TESTS)

test: lint test-interpreted test-compiled

soak: install
	WALKBACK_SOAK=100000 $(BIN)/pytest -m "kernel or soak" -k "hostile" $(TESTS)
	WALKBACK_STOPS=100 WALKBACK_SAMPLES=5000 WALKBACK_KILLS=100 $(BIN)/pytest -k "peers or survival" tests/live

bench: install peers
	$(BIN)/python bench/run.py

peers:
	$(PYTHON) tools/peers.py

clean:
	rm -rf .venv .cache build
	find src -name '*.so' -delete
