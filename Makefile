# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3.11
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet install -c constraints.txt
EXTRAS := train,xlsx,zstd,frames,serve,plots,hub,mlflow,onnx,tensorboard,tune,transformers,datasets,bench,docs,dev
SOURCES := src tests benchmarks tools
PROSE := README.md CONTRIBUTING.md CHANGELOG.md docs src tools

FAULTS ?= 1000
MINUTES ?= 10

.PHONY: install demo test check lint style types docs bench faults fuzz soak sanitize lock architecture clean

install: .venv/.extras

demo: .venv/.core
	$(BIN)/emhrnn demo --out demo

# Types take a minute of one core at first: the tests begin meanwhile. Bytecode is kept, whatever the shell says:
# without it, each process that a test starts would compile the package again.
test: style
	$(MAKE) --no-print-directory -j 2 types check

check: install
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: style types

style: install
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check --quiet $(SOURCES)
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell $(PROSE)
	$(BIN)/python -m tools.prose
	@mkdir -p build; $(BIN)/pip-audit --disable-pip --require-hashes --progress-spinner off -r requirements.lock >build/audit.txt 2>&1 \
		|| { grep -A99 '^Found' build/audit.txt && exit 1; echo 'pip-audit could not ask for known weaknesses: build/audit.txt'; }

types: install
	$(BIN)/mypy

# The documentation site, in build/site: strict, without network. tests/test_site.py builds it, too.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "To read it: $(PYTHON) -m http.server --directory build/site"

bench: install
	for name in text lstm train_step estep evidence scoring explain distributed serve; do $(BIN)/python -m benchmarks.$$name --quick; done

# Kill, power loss, full disk and other faults in every command that writes; results/reliability.md tells of them.
faults: install
	$(BIN)/python -m tests.faults.campaign --faults $(FAULTS) --record

# Damaged and made-up files, settings, runs and texts for everything that reads.
fuzz: install
	$(BIN)/python -m tests.faults.fuzz --minutes $(MINUTES) --record
	$(BIN)/python -m tests.faults.damage --record

# A server under mixed load: its memory and its open files must not grow.
soak: install
	$(BIN)/python -m tests.faults.soak --minutes $(MINUTES) --record

# The tests of native code under address and undefined-behaviour sanitizers.
sanitize: install
	$(BIN)/python -m tests.faults.sanitize --record

# Writes requirements.lock: what `pip install emhrnn` gives, with the hashes of all files. After constraints.txt changes.
lock: install
	$(PIP) uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --quiet \
		-c constraints.txt pyproject.toml -o requirements.lock

# Writes docs/architecture.md from the source tree.
architecture:
	$(PYTHON) -m tools.architecture

clean:
	rm -rf .venv demo dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# The demo trains, so it needs torch: the constraints pin it, so that no CUDA build is pulled in.
.venv/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[train]'
	touch $@

.venv/.extras: .venv/.core
	$(PIP) --editable '.[$(EXTRAS)]'
	touch $@
