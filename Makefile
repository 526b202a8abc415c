# The daily loop. CI runs the same commands.
.DEFAULT_GOAL := help
SHELL := /bin/bash
THRONG := $(or $(CARGO_TARGET_DIR),target)/release/throng

.PHONY: help demo test check bench proof lab fmt setup-build setup-test build

help: ## What there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: setup-build build ## Build, fill the embedded server until it breaks, write the report
	@scripts/demo.sh $(THRONG)

test: setup-test ## Install what the tests need (apt; says so), run everything
	@scripts/test.sh

check: ## Formatting, lints, unit tests, docs, dependencies: the inner loop
	@scripts/check.sh

bench: setup-test build ## The benchmarks behind docs/performance.md (real Janus, a pion peer in Go)
	@bench/run.sh

lab: setup-test build ## The truth lab: planted limits, and whether throng finds them (docs/truth.md)
	cargo run --release --locked -p throng-lab -- --throng $(THRONG)

proof: ## The ring's long proofs: loom, Miri, sanitizers (nightly), every instruction, ten minutes of soak
	@scripts/ring-loom.sh && scripts/ring-miri.sh && scripts/ring-sanitizers.sh && bench/ring-proof.sh && bench/ring-soak.sh

build: ## The release binary
	cargo build --release --locked -p throng-cli

setup-build: ## What a build needs
	@scripts/setup.sh build

setup-test: ## What the tests need
	@scripts/setup.sh test
