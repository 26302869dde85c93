# Targets of the delivery report, included by the Makefile. Spark has an environment of its own; no Java is needed.

REPORT_VENV ?= .venv-glue
REPORT_PYTHON := $(shell for p in python3.11 python3 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && { command -v "$$p"; break; }; done)
ARGS ?=

.PHONY: record-schema report report-environment report-figures glue-script test-report lint-report

report: report-environment ## analyse what the running stack has recorded, say where the report lies: make report ARGS="--date-from 2026-11-01"
	@$(REPORT_VENV)/bin/python -m glue_jobs.local_report $(ARGS)

glue-script: python ## the report's script as Glue takes it, in build/glue (make report-upload takes it to AWS)
	@$(SYSTEM_PYTHON) -m glue_jobs.bundle build/glue >/dev/null

report-environment: python
	@$(if $(REPORT_PYTHON),:,echo "pushhub: the delivery report needs Python 3.11, as its Spark (Glue 5.1) knows no later one: install python3.11 and python3.11-venv" >&2; exit 1)
	@$(REPORT_PYTHON) local/environment.py $(REPORT_VENV) requirements/glue.txt

test-report: report-environment
	@$(REPORT_VENV)/bin/python -m pytest --confcutdir=tests/glue --durations 15 tests/glue

report-figures: report-environment ## measure the report, on a quiet machine, and write its pages in docs/figures
	@$(REPORT_VENV)/bin/python -m bench.records_report --sizes 100000 1000000 10000000
	@$(REPORT_VENV)/bin/python -m bench.records_report --sizes 650000 --days 1
	@$(REPORT_VENV)/bin/python -m bench.records_sabotage
	@$(REPORT_VENV)/bin/python -m tests.glue.nights --seeds 731001 731011

lint-report: environments report-environment
	@$(VENV)/bin/mypy --python-executable $(REPORT_VENV)/bin/python \
		glue_jobs/*.py glue_jobs/delivery_report tests/glue/*.py bench/records_*.py

record-schema: environments ## write what is derived from the delivery record's fields: docs/records.md, template.yaml
	@$(PYTHON) -m local.record_schema
