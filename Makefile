# Everyday commands. `make help` lists them. Each one installs what it needs and says what and why.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# cargo with RocksDB prebuilt; without it every profile would compile RocksDB again.
CARGO := deploy/setup/cargo.sh
# Enough to notice that something broke, not enough to trust it; `make test` runs more.
CHECK_SEEDS := 1..=3
SEED ?= 1
# How long `make test` simulates new worlds, each one twice. Other seeds each time; they are printed.
SIM_BUDGET ?= 8m
# How long `make fuzz` spends on each reader.
SECONDS ?= 60

.PHONY: help setup setup-docker check test test-rust test-demo test-api openapi test-databases test-sim lint fmt demo dev sim fuzz matrix museum bench

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: ## install what building needs (C++ compiler, libclang) and build RocksDB once for this machine
	@deploy/setup/system.sh
	@deploy/setup/rocksdb.sh >/dev/null || [ $$? = 3 ]

setup-docker: ## install and start a Docker engine, unless one answers already
	@deploy/setup/docker.sh

check: setup lint ## fast: formatting, lints, house rules, tests of the pure crates, a few simulated worlds
	@$(CARGO) test -q -p cara-chaos --test tidy
	@$(CARGO) test -q -p cara-core -p cara-env -p cara-proto -p cara-transport
	@$(CARGO) test -q -p cara-agent -p caractrl --lib
	@$(CARGO) run -q -p caractrl -- apply --dry-run client -f deploy/examples >/dev/null
	@$(CARGO) build -q -p cara-chaos --bin cara-chaos
	@target/debug/cara-chaos sim --seeds $(CHECK_SEEDS)
	@echo "check: ok"

test: setup test-rust test-demo test-api test-databases test-sim lint ## everything: unit, property, story, simulation, end to end with a real Docker engine, lints
	@echo "test: ok"

test-rust: setup
	@deploy/setup/test.sh

# The demo is the end-to-end test of the main job; here with the binaries of the test profile.
test-demo: setup
	@$(CARGO) build -q --workspace --bins
	@CARA_BIN=target/debug deploy/demo/demo.sh
	@target/debug/caractrl dev --exit-after-ready

test-api: setup ## what schemathesis makes of the OpenAPI document is sent to three real servers
	@$(CARGO) build -q --workspace --bins
	@CARA_BIN=target/debug deploy/demo/fuzz-api.sh

test-databases: setup ## real databases move between two Docker engines while servers and agents are killed (root, Docker)
	@$(CARGO) build -q --workspace --bins
	@CARA_BIN=target/debug deploy/demo/databases.sh

# Every scenario of the library, then worlds that nobody has seen yet. A seed that fails leaves a bundle in chaos-failures
# and a line that replays it.
test-sim: setup
	@$(CARGO) build -q --workspace --bins
	@target/debug/cara-chaos list --names | xargs -P 2 -I NAME target/debug/cara-chaos run NAME --seeds 1 --tick-ms 5 --jobs 1
	@target/debug/cara-chaos sim --seeds random --budget $(SIM_BUDGET) --twice

lint: setup ## formatting and clippy, warnings are errors
	@cargo fmt --all --check
	@$(CARGO) clippy -q --workspace --all-targets -- -D warnings

fmt: ## format everything
	@cargo fmt --all

demo: setup ## the main job: three servers, two agents, one container that survives the loss of the leader
	@$(CARGO) build --release -p cara-control -p cara-agent -p caractrl --bins
	@CARA_BIN=target/release deploy/demo/demo.sh

dev: setup ## a cluster to play with on this machine: `caractrl dev`
	@$(CARGO) build -p cara-control -p cara-agent -p caractrl --bins
	@target/debug/caractrl dev

openapi: setup ## write deploy/openapi.json anew, after a change of the API
	@CARA_UPDATE=1 $(CARGO) test -q -p cara-control --lib openapi >/dev/null
	@git --no-pager diff --stat -- deploy/openapi.json

sim: setup ## one simulated world, twice, compared to the byte: make sim SEED=42
	@$(CARGO) build -q -p cara-chaos --bin cara-chaos
	@target/debug/cara-chaos sim --seed $(SEED) --twice

fuzz: setup ## every reader of others' bytes, guided by coverage: make fuzz SECONDS=60 (for each of them)
	@deploy/setup/fuzz.sh $(SECONDS)

matrix: setup ## every step of machines' lives under every fault on every role, in the simulator
	@$(CARGO) build -q -p cara-chaos --bin cara-chaos
	@target/debug/cara-chaos matrix

museum: setup ## find every bug that is planted on purpose
	@$(CARGO) build -q -p cara-chaos --bin cara-chaos
	@target/debug/cara-chaos museum

bench: setup ## a thousand agents and a leader's death; writes, reads and failover beside etcd, on this machine
	@deploy/setup/etcd.sh
	@$(CARGO) build --release -p cara-control -p cara-agent -p caractrl -p cara-bench --bins
	@target/release/cara-bench agents --agents 1000 --failover --require false_offline=0 --html bench-agents.html
	@target/release/cara-bench kv --vs etcd --html bench-kv.html
