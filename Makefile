# The front door. `make` alone says what there is.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
BUILD := build/release

.PHONY: help demo build deps test bench lint lint-all fuzz soak clean

help:
	@echo 'make demo       install what is needed, build, and tune a small CNN on Fashion-MNIST (12 trials, under 8 minutes)'
	@echo 'make test       install what is needed, build, run the tests'
	@echo 'make build      the program at $(BUILD)/jizi'
	@echo 'make bench      measure the service beside a bare gRPC echo and the disk'
	@echo 'make lint       clang-format, clang-tidy on changed files, thread-safety analysis;   make lint-all: on every file'
	@echo 'make fuzz       ten minutes of libFuzzer for each target;   make soak: the random tests, much longer'
	@echo 'make clean      remove build/'
	@echo
	@scripts/deps.sh --torch --check || echo '(`make deps` installs them; demo, test and build call it)'

deps:
	@scripts/deps.sh --torch

build: deps
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)

demo: build
	$(BUILD)/jizi run examples/fashion_mnist/sweep.yaml --db fashion_mnist.db --resume

# What CI runs; ctest's closing line of the release build ends the output.
test:
	@scripts/test.sh

bench: build
	$(BUILD)/service_load

lint:
	@scripts/lint.sh changed
lint-all:
	@scripts/lint.sh all

fuzz:
	@scripts/fuzz.sh 600

soak: build
	JIZI_SIM_SEEDS=200000 JIZI_KILL_ROUNDS=200 ctest --test-dir $(BUILD) -L 'sim|property|fault|integration' --output-on-failure --timeout 7200

clean:
	rm -rf build
