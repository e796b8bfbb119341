# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3.11
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
# First what a lock file names, compared with its hashes. Then the package, and what torch wants on this platform.
HASHED := $(PIP) install --require-hashes --no-deps
EDITABLE := $(PIP) install --constraint constraints.txt --no-build-isolation --editable
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

# Writes the lock files, with the hashes of all files of the index: what `pip install emhrnn` gives; torch; what training and
# what development add, and what builds the package. After constraints.txt changes. Without libraries of CUDA: the torch
# that wants them pins them. TORCH_CPU: what `pip hash` says of the CPU build for Linux and Python 3.11, from another index.
TORCH_CPU := sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b
CUDA := /^(nvidia-|cuda-|triton)/,/[^\\]$$/d
comma := ,
LOCK := $(BIN)/uv pip compile --universal --python-version 3.11.5 --generate-hashes --no-annotate --quiet -c constraints.txt
BUILD := printf 'hatchling\neditables\n' |

lock: install
	$(PIP) install --constraint constraints.txt uv
	$(LOCK) pyproject.toml -o requirements.lock
	echo torch | $(LOCK) - --no-deps -o requirements-torch.lock
	sed -i 's/^torch==.*/&\n    --hash=$(TORCH_CPU) \\/' requirements-torch.lock
	$(BUILD) $(LOCK) - pyproject.toml --extra train --no-emit-package torch -o requirements-train.lock
	$(BUILD) $(LOCK) - pyproject.toml $(addprefix --extra ,$(subst $(comma), ,$(EXTRAS))) \
		--no-emit-package torch --no-emit-package pip -o requirements-dev.lock
	sed -E -i '$(CUDA)' requirements-train.lock requirements-dev.lock

# Writes docs/architecture.md from the source tree.
architecture:
	$(PYTHON) -m tools.architecture

clean:
	rm -rf .venv demo dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# torch is downloaded first: given hashes of several builds, pip would take the one of the index, which has CUDA.
.venv/.core: pyproject.toml constraints.txt requirements-torch.lock requirements-train.lock
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) download --no-deps --constraint constraints.txt --dest build/torch torch
	$(HASHED) --no-index -f build/torch --requirement requirements-torch.lock
	rm -r build/torch
	$(HASHED) --requirement requirements-train.lock
	$(EDITABLE) '.[train]'
	touch $@

.venv/.extras: .venv/.core requirements-dev.lock
	$(HASHED) --requirement requirements-dev.lock
	$(EDITABLE) '.[$(EXTRAS)]'
	touch $@
