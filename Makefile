# The only entry. `make demo` and `make test` work on a fresh clone; every target is a short wrapper of CMake or pytest.
PYTHON ?= python3.11
APT    := g++ cmake ninja-build libgtest-dev python3.11-dev python3.11-venv ccache mold
VENV   := .venv
BIN    := $(VENV)/bin
SITE   := $(CURDIR)/build/site
RUN    := PYTHONPATH=$(SITE) $(BIN)/python
READY  := $(VENV)/.ready
CXX_FILES = $(shell find src tests tools -name '*.h' -o -name '*.cpp')

.PHONY: setup build core test test-core golden bless fuzz bench demo lint format clean

setup: $(READY)
$(READY): requirements.txt
	@dpkg -s $(APT) >/dev/null 2>&1 || if [ "$$(id -u)" = 0 ]; \
	  then apt-get -qq update && apt-get -qq install -y --no-install-recommends $(APT) >/dev/null; \
	  else echo "not root, going on without: apt-get install $(APT)"; fi
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.txt
	touch $@

build/dev/build.ninja: | $(READY)
	cmake --preset dev -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
build/release/build.ninja: | $(READY)
	cmake --preset release -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python

core: build/dev/build.ninja  # the layers without Python and torch, with sanitizers
	cmake --build --preset dev

build: build/release/build.ninja  # everything; the package lands in build/site
	cmake --build --preset release
	cmake --install build/release --prefix $(SITE) >/dev/null

test-core: core golden
	ctest --preset dev

test: test-core build
	ctest --preset release
	$(RUN) -m pytest tests/python tests/fuzz tests/models --durations=15

golden: core
	$(BIN)/python -m pytest tests/golden

bless: core  # make bless ONLY=name
	$(BIN)/python -m pytest tests/golden --bless $(if $(ONLY),-k $(ONLY))

fuzz: build  # make fuzz SEEDS=1000:2000
	FUZZ_SEEDS=$(or $(SEEDS),0:200) $(RUN) -m pytest tests/fuzz

bench: build  # make bench ROWS="tiny seed"
	$(RUN) benchmarks/compare.py $(ROWS)

demo: build
	$(RUN) tools/demo.py

lint: $(READY)
	$(BIN)/python tools/check_layers.py
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CXX_FILES)

clean:
	rm -rf build
