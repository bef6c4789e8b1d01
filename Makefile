# Every target makes the environment that it needs in .venv. Needed beforehand: Python 3.11+, make, git.
#
#   make dataset      build the data set into data/, load it back, print a sample and a table
#   make test         all checks and tests that finish in minutes
#
# PYTHON=python3.12           interpreter that the environment is made with
# TORCH=torch==2.13.0         what is installed as PyTorch (only test and judging need it)
# TORCH_INDEX=https://download.pytorch.org/whl/cpu    a small PyTorch without CUDA

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(if $(shell $(p) -c \
	'import sys; sys.version_info >= (3, 11) and print(1)' 2>/dev/null),$(p))) python3)
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
OUT ?= data

BIN := .venv/bin
PIP = @echo "Installing into .venv: $(patsubst .%,%,$(@F)) (minutes the first time)" && \
	$(BIN)/python -m pip install -qq --disable-pip-version-check
# -P: without it the checkout's validators/ would hide the index's package of that name.
RUN := $(BIN)/python -P -m
HAS_GPU := command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q '^GPU'

.PHONY: dataset test test-all test-gpu check schemas docs card wheel clean
.DEFAULT_GOAL := dataset

dataset: .venv/.light
	@if ! ($(HAS_GPU)); then \
		echo "No GPU found: recorded GPU verdicts are carried over where they still match."; \
	elif ! command -v nvcc >/dev/null 2>&1; then \
		echo "A GPU was found, but no nvcc on PATH: nothing is judged again."; \
	else \
		echo "GPU found: $$(nvidia-smi -L | head -n 1)"; \
		$(MAKE) --no-print-directory .venv/.judge || exit $$?; \
		code=0; $(BIN)/concur rejudge builders/corpus || code=$$?; \
		case $$code in 0|1|3) ;; *) exit $$code;; esac; \
	fi
	$(BIN)/concur build --out $(OUT)
	$(RUN) concur.summary $(OUT)

# Tests that are left out: `test` leaves out those marked long, and both those that lack a GPU.
test: LEFT_OUT := long
test-all: LEFT_OUT :=

# Both parts run, whatever the first says; pytest comes last, so that its summary ends the output.
test test-all: .venv/.dev
	@failed=0; $(MAKE) --no-print-directory check || failed=1; \
	marks="$(LEFT_OUT:%=not %)"; $(HAS_GPU) || marks="$${marks:+$$marks and }not gpu"; \
	echo "pytest -m '$$marks'"; $(BIN)/pytest -m "$$marks" || failed=1; exit $$failed

test-gpu: .venv/.dev
	@$(HAS_GPU) || { echo "No GPU found." >&2; exit 3; }
	$(BIN)/pytest -m gpu

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

schemas: .venv/.light
	$(RUN) concur.schemas.jsonschema

docs: .venv/.light
	$(RUN) concur.validators.rules_page

card: .venv/.light
	$(BIN)/concur build --out $(OUT)
	cp $(OUT)/README.md dataset_card.md

wheel: .venv/.dev
	$(BIN)/python -P -m build --wheel --no-isolation --outdir dist .
	$(BIN)/python -P -m zipfile --list dist/concur_kernels-*.whl

clean:
	rm -rf .venv build dist $(OUT) *.egg-info

.venv/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "Error: $(PYTHON) not found; install Python 3.11 or newer, or set PYTHON=" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Error: concur needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) -V); set PYTHON=" >&2; exit 2; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
		echo "Error: no environment could be made; on Debian and Ubuntu install python3-venv" >&2; exit 2; }

.venv/.light: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[tokens]'
	@touch $@

.venv/.torch: | .venv/bin/python
	$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) '$(TORCH)'
	@touch $@

.venv/.judge: pyproject.toml .venv/.torch
	$(PIP) --editable '.[judge,tokens]'
	@touch $@ .venv/.light

.venv/.dev: pyproject.toml .venv/.torch
	$(PIP) --editable '.[judge,tokens,dev]'
	@touch $@ .venv/.judge .venv/.light
