# Everything a person or CI does with Pushhub on one machine. Needs Python 3.11 to 3.14 and make, nothing else.
# Environments are made from lock files, and again only when those change (local/environment.py).

VENV ?= .venv
EMULATOR_VENV ?= .venv-ministack
SAM_VENV ?= .venv-sam
BROWSER_VENV ?= .venv-browser
MUTANTS_VENV ?= .venv-mutants
NAME ?=
OF ?=
SINCE ?= HEAD
STACK ?= pushhub
SEED ?= 1
SEEDS ?= 10
WORLD ?= all
HOURS ?= 6
MOST ?= 40
DRAW ?=
RATE ?= 12
ONLY ?=

# Functions run under 3.11 on AWS unless another is chosen, so it comes first.
SYSTEM_PYTHON := $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null && { command -v "$$p"; break; }; done)
PYTHON := $(VENV)/bin/python

export PYTHONPATH := layers/pushhub:.
export PUSHHUB_EMULATOR := $(abspath $(EMULATOR_VENV)/bin/python)
export PYTHONDONTWRITEBYTECODE := 1

# A file's tests in one process. A process that died (pyproject.toml: faulthandler_timeout) is not begun again with the same test.
IN_TWO := -n 2 --dist loadfile --max-worker-restart 0

# Rules, shapes and descriptions: what a slip breaks first, in seconds.
FASTEST := tests/architecture tests/base tests/engine/model tests/ironmq/wire tests/hub/wire tests/notifications/wire tests/template \
	tests/web/test_openapi.py tests/web/test_callers.py

.DEFAULT_GOAL := help
.PHONY: help check simulate run up down clean status project deployable template-diff report-upload logs test test-quick test-stack test-sam test-browser test-others mutants sabotage sam-local lint format environments python

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: environments ## bring the stack up, show the main job, stay until Ctrl-C
	@$(PYTHON) -m local run

up: environments ## bring the stack up and return
	@$(PYTHON) -m local up

down: environments ## stop the stack, keep its state
	@$(PYTHON) -m local down

clean: environments ## stop the stack, remove its state
	@$(PYTHON) -m local clean

status: environments ## whether the stack runs, and how to reach it
	@$(PYTHON) -m local status

project: environments ## make another project with a token of its own: make project NAME=second
	@$(if $(NAME),$(PYTHON) -m local project "$(NAME)",echo "pushhub: say which: make project NAME=second" >&2; exit 1)

deployable: environments ## what sam build takes: build/template.json
	@$(PYTHON) -m local.deployable build/template.json

template-diff: environments ## what a change of template.yaml changes on AWS: make template-diff SINCE=main
	@$(PYTHON) -m local.template_diff $(SINCE) || [ $$? = 1 ]

report-upload: environments ## after sam deploy: the report job's script and libraries: make report-upload STACK=pushhub REGION= PROFILE=
	@$(PYTHON) -m local.report_upload $(STACK) $(if $(REGION),--region $(REGION)) $(if $(PROFILE),--profile $(PROFILE))

logs: environments ## follow the logs of the running stack
	@$(PYTHON) -m local logs

sam-local: environments deployable ## sam local invoke: build, seed the running stack with work for each function, show the commands
	@$(SYSTEM_PYTHON) local/environment.py $(SAM_VENV) requirements/sam.txt
	@SAM_CLI_TELEMETRY=0 $(SAM_VENV)/bin/sam build --parameter-overrides Architecture=$$($(PYTHON) -m local.sam_local architecture) >/dev/null
	@$(PYTHON) -m local.sam_local

check: environments ## within a minute whether a change is sane: style, types, the fastest tests
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check -q .
	@$(PYTHON) -m pytest -q -x $(IN_TWO) $(FASTEST) & tests=$$!; \
		$(VENV)/bin/mypy layers/pushhub functions cli; types=$$?; wait $$tests && exit $$types

# The stack waits for its clocks most of the time, sam and the browser for the stack's answers, and the report's Spark keeps
# no more than one core busy for long. The other tests, which can use both, are nice and take what these leave.
LANE := $(SYSTEM_PYTHON) .ci/lane.py
NICE := nice -n 5
test: export LANES_BEGAN := $(shell date +%s)
test: environments report-environment ## style, types and the fastest tests, then every other test
	@mkdir -p build && rm -f build/lanes.txt
	@$(LANE) test-report $(MAKE) --no-print-directory test-report >build/test-report.txt 2>&1 & report=$$!; \
		$(LANE) "check lint" $(MAKE) --no-print-directory check lint || { kill $$report; wait $$report; exit 1; }; \
		$(LANE) test-others $(NICE) $(MAKE) --no-print-directory test-others >build/test-others.txt 2>&1 & others=$$!; \
		$(LANE) "test-sam test-browser" $(MAKE) --no-print-directory -k test-sam test-browser >build/test-sam-and-browser.txt 2>&1 & beside=$$!; \
		$(LANE) test-stack $(MAKE) --no-print-directory test-stack; stack=$$?; \
		wait $$others; others=$$?; wait $$beside; beside=$$?; wait $$report; report=$$?; \
		cat build/test-others.txt build/test-sam-and-browser.txt build/test-report.txt build/lanes.txt; \
		[ $$stack = 0 ] && [ $$others = 0 ] && [ $$beside = 0 ] && [ $$report = 0 ]

test-others: environments
	@$(PYTHON) -m pytest -q --durations 10 $(IN_TWO) $(addprefix --ignore=,tests/stack tests/sam tests/glue tests/browser $(FASTEST))

test-quick: environments ## tests that need no running stack
	@$(PYTHON) -m pytest -q --durations 10 $(IN_TWO) --ignore tests/stack --ignore tests/sam --ignore tests/glue --ignore tests/browser

test-stack: environments report-environment ## tests on a running stack
	@$(PYTHON) -m pytest -v --durations 15 $(IN_TWO) tests/stack

test-sam: environments report-environment ## tests of sam build and deploy
	@$(PYTHON) -m pytest -v tests/sam

test-browser: environments ## tests of the console in Debian's chromium
	@if command -v chromium >/dev/null; then \
		$(SYSTEM_PYTHON) local/environment.py $(BROWSER_VENV) requirements/browser.txt && $(BROWSER_VENV)/bin/python -m pytest -q tests/browser; \
	else echo "pushhub: tests/browser left out, as there is no chromium here: install the package chromium to have them"; fi

mutants: environments ## change the engine in small ways and see whether a test notices: make mutants OF="engine/model/*=tests/engine"
	@$(SYSTEM_PYTHON) local/environment.py $(MUTANTS_VENV) requirements/mutants.txt
	@$(MUTANTS_VENV)/bin/python -m local.mutants $(OF)

simulate: environments ## faults on the real code in virtual time: make simulate SEED=1 SEEDS=10 WORLD=all HOURS=6 (docs/simulation.md)
	@$(PYTHON) -m simulation --seed $(SEED) --seeds $(SEEDS) --world $(WORLD) --hours $(HOURS) --rate $(RATE) --only "$(ONLY)"

sabotage: environments ## changes of the hub's code that a seed draws: does the simulator notice? make sabotage MOST=40 DRAW=1, or KNOWN=all (docs/simulation.md)
	@$(PYTHON) -m simulation.strangers --most $(MOST) $(if $(DRAW),--seed $(DRAW)) $(if $(OF),--of "$(OF)") $(if $(KNOWN),--known "$(KNOWN)")

lint: environments lint-report ## style and types
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy layers/pushhub functions local cli tests bench simulation

format: environments ## put the code into its style
	@$(VENV)/bin/ruff check --fix-only .
	@$(VENV)/bin/ruff format .

environments: python
	@$(SYSTEM_PYTHON) local/environment.py $(VENV) requirements/dev.txt pushhub=cli.__main__
	@$(SYSTEM_PYTHON) local/environment.py $(EMULATOR_VENV) requirements/ministack.txt

python:
	@$(if $(SYSTEM_PYTHON),:,echo "pushhub: Python 3.11, 3.12, 3.13 or 3.14 is missing: install the packages python3 and python3-venv" >&2; exit 1)

include glue_jobs/targets.mk
