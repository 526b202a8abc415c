# The daily loop. CI runs the same commands.
.DEFAULT_GOAL := help
SHELL := /bin/bash
THRONG := $(or $(CARGO_TARGET_DIR),target)/release/throng

.PHONY: help demo study test check lint bench proof lab stability packages book fmt setup-build setup-check setup-test build

help: ## What there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: setup-build build ## Build, fill the embedded server until it breaks, write the report
	@scripts/demo.sh $(THRONG)

study: setup-test build ## The campus study: RTSP and HTTP servers in a grid of storage, codec, CPUs (docs/measurements/campus-study.md), 15 minutes, as root
	@scripts/study.sh $(THRONG)

test: setup-test ## Install what the tests need (apt, cargo; says so), run all that must hold at every landing
	@scripts/test.sh

check: lint ## The inner loop: lint, and the unit tests
	@cargo nextest run --workspace --locked -E 'kind(lib) + kind(bin)' --status-level fail
	@cargo nextest run --manifest-path ring/Cargo.toml --target-dir $(or $(CARGO_TARGET_DIR),target) --locked -E 'kind(lib)' --status-level fail

lint: setup-check ## Formatting, lints, docs, dependencies
	@scripts/lint.sh

bench: setup-test build ## The benchmarks of docs/measurements (real Janus, a pion peer in Go)
	@bench/run.sh

lab: setup-test build ## The truth lab: planted limits, and whether throng finds them (docs/truth.md)
	cargo run --release --locked -p throng-lab -- --throng $(THRONG)

stability: setup-test build ## One planted limit ten times, which must have one name (docs/truth.md)
	cargo run --release --locked -p throng-lab -- --throng $(THRONG) --short --repeat 10 --only "one hot thread"

proof: setup-test ## What takes too long for every landing: mutations, Miri, sanitizers, soak, the whole lab (docs/testing.md)
	@scripts/proof.sh

packages: ## Tarball, .deb and .rpm in target/packages; as root each is tried in a minimal Debian 12 (docs/install.md)
	@scripts/packages.sh

book: ## The documentation as a book with search, in target/book/html; its links are checked
	@scripts/book.sh

build: ## The release binary
	cargo build --release --locked -p throng-cli

setup-build: ## What a build needs
	@scripts/setup.sh build

setup-check: ## What lints and unit tests need
	@scripts/setup.sh check

setup-test: ## What the tests need
	@scripts/setup.sh test
