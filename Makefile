# Every target sets up what it needs on a fresh machine: Python 3.11+ and, where no release can be
# downloaded, Go (the programs of the sandbox are then built once into the user's cache).

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: demo sandbox check test clean tools

demo: $(STAMP)
	$(RUN) -m sandbox demo

sandbox: $(STAMP)
	$(RUN) -m sandbox up
	$(RUN) -m sandbox platform up
	$(RUN) -m sandbox status

check: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(RUN) -m pytest -q -m "not sandbox and not e2e" -n 2

test: check tools
	$(RUN) -m pytest -q -m "sandbox and not e2e" -n 2
	$(RUN) -m tests.cases tests/cases/inputs
	$(RUN) -m sandbox demo
	$(RUN) -m pytest -q -m e2e -n 2 --dist loadfile

tools: $(STAMP)
	$(RUN) -m sandbox tools

clean:
	-test -x $(RUN) && $(RUN) -m sandbox down
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(STAMP): requirements.lock pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install -q --disable-pip-version-check uv
	$(VENV)/bin/uv pip install -q --python $(RUN) -r requirements.lock
	$(VENV)/bin/uv pip install -q --python $(RUN) --no-deps -e .
	touch $@
