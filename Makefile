# The front door. `make` alone says what there is.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
BUILD := build/release

.PHONY: help demo build deps test bench bench-bo lint lint-all fuzz soak clean

help:
	@echo 'make demo       install what is needed, build, and tune a small CNN on Fashion-MNIST (12 trials, under 8 minutes)'
	@echo 'make test       install what is needed, build, run the tests'
	@echo 'make build      the program at $(BUILD)/jizi, the library JiziTrialHelper and the examples (from nothing about 10 minutes on 2 cores)'
	@echo 'make bench      measure the service beside a bare gRPC echo and the disk;   make bench-bo: the Bayesian methods beside recorded peers'
	@echo 'make lint       clang-format, clang-tidy on changed files, thread-safety analysis;   make lint-all: on every file'
	@echo 'make fuzz       ten minutes of libFuzzer for each target;   make soak: the random tests, much longer'
	@echo 'make clean      remove build/'
	@echo
	@scripts/deps.sh --torch --check || echo '(`make deps` installs them; demo, test and build call it)'

deps:
	@scripts/deps.sh --torch

build: deps
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target jizi JiziTrialHelper examples/all

demo: build
	$(BUILD)/jizi run examples/fashion_mnist/sweep.yaml --db fashion_mnist.db --resume

# What CI runs; ctest's closing line of the release build ends the output.
test:
	@scripts/test.sh

bench: build
	@cmake --build $(BUILD) -j $(JOBS) --target service_load
	$(BUILD)/service_load

# Bayesian optimisation beside recorded peers. TABLES=DIR: a folder of recorded tables (tests/bench/README.md); BBOB=1: also BBOB,
# which needs `pip install coco-experiment`; PEERS="a.jsonl b.jsonl": records to print beside ours.
SEEDS ?= 0-19
PLAY = $(PYTHON) tests/bench/bo_bench.py run $(BUILD)/bo_ask_tell --method $$method --name jizi-$$method --seeds $(SEEDS) --out $(BUILD)/bo/$$method.jsonl
bench-bo: deps
	@[ -n "$(TABLES)$(BBOB)" ] || { echo 'bench-bo: nothing to play: give TABLES=DIR, BBOB=1 or both (tests/bench/README.md)' >&2; exit 2; }
	@cmake --preset release >/dev/null && cmake --build $(BUILD) -j $(JOBS) --target bo_ask_tell
	@rm -rf $(BUILD)/bo
	@set -e; for method in bayes tpe random; do \
	  [ -z "$(TABLES)" ] || $(PLAY) --tables "$(TABLES)" --budget 50; \
	  [ -z "$(BBOB)" ] || $(PLAY) --bbob --budget 100; done
	@$(PYTHON) tests/bench/bo_bench.py report $(BUILD)/bo/*.jsonl $(PEERS) --problems
	@$(PYTHON) tests/bench/bo_bench.py speed $(BUILD)/bo_ask_tell
PYTHON ?= python3

lint:
	@scripts/lint.sh changed
lint-all:
	@scripts/lint.sh all

fuzz:
	@scripts/fuzz.sh 600

soak: build
	@cmake --build $(BUILD) -j $(JOBS)
	JIZI_SIM_SEEDS=200000 JIZI_KILL_ROUNDS=200 ctest --test-dir $(BUILD) -L 'sim|property|fault|integration' --output-on-failure --timeout 7200

clean:
	rm -rf build
