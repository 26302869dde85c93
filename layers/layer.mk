# Builds the layer for "sam build" (BuildMethod: makefile). The folder of the Makefile that includes this says for what: template.yaml
# chooses it by Runtime and Architecture. LAYER_TARGET=machine builds for this machine's own Python, as emulators need it.
LAYER_MK := $(abspath $(lastword $(MAKEFILE_LIST)))
LAYER_TARGET ?= $(notdir $(patsubst %/,%,$(dir $(abspath $(firstword $(MAKEFILE_LIST))))))
LAYER_PYTHON ?= python3

build-PushhubLayer: LAYER = pushhub
build-ScriptingLayer: LAYER = scripting

build-PushhubLayer build-ScriptingLayer:
	@PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$(dir $(LAYER_MK)).." "$(LAYER_PYTHON)" -m local.layer "$(LAYER)" "$(LAYER_TARGET)" "$(ARTIFACTS_DIR)"
