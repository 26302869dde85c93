# Everything a person or CI does with Pushhub on one machine. Needs Python 3.11 to 3.14 and make, nothing else.
# Environments are made from lock files, and again only when those change (local/environment.py).

VENV ?= .venv
EMULATOR_VENV ?= .venv-ministack
SAM_VENV ?= .venv-sam
AUDIT_VENV ?= .venv-audit
BROWSER_VENV ?= .venv-browser
NAME ?=
OF ?=
STACK ?= pushhub
SEED ?= 1
SEEDS ?= 10
WORLD ?= all
HOURS ?= 6
MOST ?= 40
TIMES ?= 10
DRAW ?=
RATE ?= 12
ONLY ?=

# Functions run under 3.11 on AWS unless another is chosen, so it comes first.
SYSTEM_PYTHON := $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null && { command -v "$$p"; break; }; done)
PYTHON := $(VENV)/bin/python

export PYTHONPATH := layers/pushhub:.
export PUSHHUB_EMULATOR := $(abspath $(EMULATOR_VENV)/bin/python)

# A file's tests in one process. A process that died (pyproject.toml: faulthandler_timeout) is not begun again with the same test.
IN_TWO := -n 2 --dist loadfile --max-worker-restart 0

# Which command runs a test is seen from its folder: these are left to `make test-all`, and `make test` runs all others,
# tests/paths on a running stack, and the rest, which need none, in two processes.
LONG := browser contract exhaustive functions glue local operating sam simulation stack
# Each half in one process: where two share the tests, each reads all of them first, which was a seventh of all CPU.
SECOND := cli notifications scripting seeds sinks template web webhooks
UNIT_1 := $(addprefix tests/,$(filter-out $(LONG) $(SECOND) paths fakes __pycache__,$(notdir $(patsubst %/,%,$(wildcard tests/*/)))))
UNIT_2 := $(addprefix tests/,$(SECOND))
# Rules, shapes and descriptions: what a slip breaks first, in seconds.
FASTEST := tests/architecture tests/base tests/ironmq/wire tests/hub/wire tests/notifications/wire tests/template tests/web/test_callers.py
PYTEST := $(PYTHON) -m pytest -q
# Tests by the machine's clock: what fails of them runs once more, and is named.
TWICE := $(SYSTEM_PYTHON) .ci/twice.py

.DEFAULT_GOAL := help
.PHONY: help docker check style simulate examples run up down clean status project report-upload logs rights test test-all test-unit test-unit-1 test-unit-2 test-paths test-long test-local test-simulation test-stack test-sam test-browser sabotage sam-local lint format environments environment emulator-environment sam-environment browser-environment svix-environment python

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

report-upload: environments ## after sam deploy: the report job's script and libraries: make report-upload STACK=pushhub REGION= PROFILE=
	@$(PYTHON) -m local.report_upload $(STACK) $(if $(REGION),--region $(REGION)) $(if $(PROFILE),--profile $(PROFILE))

logs: environments ## follow the logs of the running stack
	@$(PYTHON) -m local logs

docker:
	@docker info >/dev/null 2>&1 || { echo "pushhub: sam local runs functions in containers, and there is no Docker here that answers (docs/testing-sam-local.md)" >&2; exit 1; }

sam-local: docker environments sam-environment ## sam local invoke: build, seed the running stack with work for each function, show the commands
	@SAM_CLI_TELEMETRY=0 $(SAM_VENV)/bin/sam build --parameter-overrides Architecture=$$($(PYTHON) -m local.sam_local architecture) >/dev/null
	@$(PYTHON) -m local.sam_local

check: environment ## in half a minute whether a change is sane: style, types, the fastest tests
	@$(PYTEST) -x $(IN_TWO) $(FASTEST) & tests=$$!; \
		$(MAKE) --no-print-directory style; style=$$?; wait $$tests && exit $$style

style: environment
	@$(VENV)/bin/ruff check -q .
	@$(VENV)/bin/ruff format --check -q .
	@$(VENV)/bin/mypy layers/pushhub functions local cli tests bench simulation

# Each part runs as soon as what it needs is there, some at a time, and tells what it has to say when it has ended.
# .ci/lane.py notes when that was, and the CPU it took.
SOME = $(MAKE) --no-print-directory -k -j $(1) -Otarget
part-%:
	@$(SYSTEM_PYTHON) .ci/lane.py $* $(MAKE) --no-print-directory $*
QUICK := style test-unit-1 test-unit-2 test-paths
$(addprefix part-,$(QUICK)): part-environment
part-test-paths: $(addprefix part-,$(addsuffix -environment,emulator report sam browser svix))
parts-quick: $(addprefix part-,$(QUICK))
# Two that go by the machine's clock at a time; beside them, and only where they leave the machine idle, what only computes:
# before all else the report, which is one long process, and would leave one core idle at the end.
parts-timed: $(addprefix part-,test-stack test-sam test-browser test-local)
parts-untimed: $(addprefix part-,test-simulation test-long lint-report)

test: export LANES_BEGAN := $(shell date +%s)
test: python ## style, types, every rule's test, and one path of each kind for real: minutes
	@mkdir -p build && rm -rf build/lanes.txt build/unsteady.txt build/rights
	@$(call SOME,4) parts-quick; passed=$$?; cat build/lanes.txt; \
		echo "pushhub: left to make test-all: $(addprefix tests/,$(LONG))"; exit $$passed

test-all: export LANES_BEGAN := $(shell date +%s)
test-all: ## make test, then everything that it leaves out, also if something of it failed
	@$(MAKE) --no-print-directory test; quick=$$?; \
		nice -n 10 $(call SOME,1) part-test-report & report=$$!; nice -n 19 $(call SOME,2) parts-untimed & beside=$$!; \
		trap "kill $$report $$beside; exit 130" INT TERM; \
		$(call SOME,2) parts-timed; timed=$$?; wait $$report; reported=$$?; wait $$beside; untimed=$$?; \
		cat build/lanes.txt; cat build/unsteady.txt 2>/dev/null; exit $$((quick || timed || reported || untimed))

test-unit: environment ## tests that need no running stack and no patience
	@$(MAKE) --no-print-directory -k -j 2 -Otarget test-unit-1 test-unit-2

test-unit-1: environment
	@$(PYTEST) --durations 10 $(UNIT_1)

test-unit-2: environment
	@$(PYTEST) --durations 10 $(UNIT_2)

test-paths: environments report-environment sam-environment browser-environment svix-environment ## one path of each kind for real
	@$(WITH_PLAYWRIGHT) $(TWICE) $@ $(PYTEST) --durations 10 $(IN_TWO) tests/paths

test-long: environments ## stores and functions against stand-ins of AWS, every value, every call that can fail
	@$(PYTEST) --durations 10 tests/contract tests/exhaustive tests/functions

test-local: environments ## tests of the local runner and of operators' commands
	@$(TWICE) $@ $(PYTEST) --durations 10 tests/local tests/operating

# In the order of their names: files with few tests are long runs here, and last they would leave one core idle.
test-simulation: environments ## tests of the simulator, and the hub in it
	@$(PYTEST) --durations 10 $(IN_TWO) --no-loadscope-reorder tests/simulation

test-stack: environments report-environment ## tests on a running stack
	@$(TWICE) $@ $(PYTEST) --durations 15 $(IN_TWO) tests/stack

test-sam: environments report-environment sam-environment ## tests of sam build and deploy
	@$(TWICE) $@ $(PYTEST) tests/sam

test-browser: environments browser-environment ## tests of the console in Debian's chromium
	@if command -v chromium >/dev/null; then $(WITH_PLAYWRIGHT) $(TWICE) $@ $(PYTEST) tests/browser; \
	else echo "pushhub: tests/browser left out, as there is no chromium here: install the package chromium to have them"; fi

.PHONY: audit
audit: python ## known weaknesses of every locked package, as PyPI lists them; fails if one could not be asked for
	@$(SYSTEM_PYTHON) local/environment.py $(AUDIT_VENV) requirements/audit.txt
	@failed=0; for lock in layers/*/requirements.txt requirements/*.txt; do echo "$$lock:"; \
		$(AUDIT_VENV)/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off -r "$$lock" || failed=1; done; exit $$failed

simulate: environments ## faults on the real code in virtual time: make simulate SEED=1 SEEDS=10 WORLD=all HOURS=6 (docs/simulation.md)
	@$(PYTHON) -m simulation --seed $(SEED) --seeds $(SEEDS) --world $(WORLD) --hours $(HOURS) --rate $(RATE) --only "$(ONLY)"

examples: environment ## new examples for every rule that holds for all values, ten times as many as make test: make examples TIMES=10
	@PUSHHUB_NEW_EXAMPLES=$(TIMES) $(PYTEST) $(IN_TWO) -m hypothesis $(UNIT_1) $(UNIT_2)

rights: environment ## which rights of the functions' roles no suite has used since build/rights was removed (docs/testing.md)
	@$(PYTHON) -m simulation.rights

sabotage: environments ## small changes of the code that a seed draws: which suite notices? make sabotage MOST=40 DRAW=1 OF=pushhub.hub SUITES=tests, DIFFS=folder, or KNOWN=all (docs/simulation.md)
	@$(PYTHON) -m simulation.strangers --most $(MOST) $(if $(DRAW),--seed $(DRAW)) $(if $(OF),--of "$(OF)") $(if $(SUITES),--suites $(SUITES)) $(if $(DIFFS),--diffs "$(DIFFS)") $(if $(KNOWN),--known "$(KNOWN)")

lint: style lint-report ## style and types, those of the report, too

format: environments ## put the code into its style
	@$(VENV)/bin/ruff check --fix-only .
	@$(VENV)/bin/ruff format .

environments: environment emulator-environment

environment: python
	@$(SYSTEM_PYTHON) local/environment.py $(VENV) requirements/dev.txt pushhub=cli.__main__

emulator-environment: python
	@$(SYSTEM_PYTHON) local/environment.py $(EMULATOR_VENV) requirements/ministack.txt

sam-environment: python
	@$(SYSTEM_PYTHON) local/environment.py $(SAM_VENV) requirements/sam.txt

# Playwright alone, on the path of the environment that the tests run in.
browser-environment: python
	@$(SYSTEM_PYTHON) local/environment.py $(BROWSER_VENV) requirements/browser.txt
WITH_PLAYWRIGHT = PYTHONPATH=$(PYTHONPATH):$(wildcard $(BROWSER_VENV)/lib/python3*/site-packages)

svix-environment: python
	@$(SYSTEM_PYTHON) local/environment.py .venv-svix-2 requirements/svix-2.txt

python:
	@$(if $(SYSTEM_PYTHON),:,echo "pushhub: Python 3.11, 3.12, 3.13 or 3.14 is missing: install the packages python3 and python3-venv" >&2; exit 1)

include glue_jobs/targets.mk
