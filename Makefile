# grouse: every task of the house; `make help` lists them.
# Needed on the machine: git, make, a C compiler, rustup's cargo, python3. Everything else is set up here.
# Build cache: $CARGO_TARGET_DIR if it is set, else ~/.cache/grouse/target, so that a second clone does not start over;
# the shell lies at target/release/grouse all the same.

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory

# Where cargo is: on PATH, or where rustup puts it.
cargo_path := $(or $(shell command -v cargo 2>/dev/null),$(wildcard $(HOME)/.cargo/bin/cargo))
# With HOME somewhere else rustup's cargo does not find its toolchains: they lie beside the folder that cargo lies in.
rust_root := $(abspath $(dir $(cargo_path))../..)
ifeq ($(RUSTUP_HOME)$(wildcard $(HOME)/.rustup),)
ifneq ($(wildcard $(rust_root)/.rustup),)
export RUSTUP_HOME := $(rust_root)/.rustup
ifeq ($(CARGO_HOME)$(wildcard $(HOME)/.cargo),)
export CARGO_HOME := $(rust_root)/.cargo
endif
endif
endif
export PATH := $(if $(cargo_path),$(dir $(cargo_path)):)$(PATH)

cache := $(if $(HOME),$(HOME)/.cache/grouse,$(CURDIR)/target/cache)
export CARGO_TARGET_DIR := $(or $(CARGO_TARGET_DIR),$(cache)/target)
tools := $(cache)/tools
cargo_deny := $(or $(shell command -v cargo-deny 2>/dev/null),$(tools)/bin/cargo-deny)
release := $(CARGO_TARGET_DIR)/release
python := .venv/bin/python
demo_rows := 10000000
wheel_name := grouse
shell := target/release/grouse
driver := $(release)/libadbc_driver_grouse.$(if $(filter Darwin,$(shell uname)),dylib,so)

.PHONY: help setup binary ordered build demo test check bench fuzz soak fmt clippy deny doc docs wheel wheel-older dist clean
.DEFAULT_GOAL := build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 13

setup: # says in one line what the machine lacks
	@scripts/setup.sh

# The whole workspace in one call: the shell, the library of the Python package and the data generator.
binary: setup
	cargo build --release --locked --workspace
	@scripts/strip.sh "$(release)/grouse" $(shell)
	@scripts/strip.sh "$(release)/grouse-cluster" target/release/grouse-cluster

ordered: binary .venv/ready # the functions of small queries side by side
	@$(python) scripts/order.py "$(release)"
	@$(MAKE) binary # links again where the order is new

build: ordered ## target/release/grouse and grouse-cluster, and the Python package in .venv
	@$(python) scripts/wheel.py "$(release)" target/wheels
	@$(python) -m pip install --quiet --no-index --no-deps --force-reinstall target/wheels/grouse-*.whl
	@echo "built target/release/grouse and the Python package (.venv/bin/python -c 'import grouse')"

.venv/ready: tests/requirements.txt
	@scripts/venv.sh .venv tests/requirements.txt

data/hits.parquet: | binary
	@mkdir -p data
	@echo "generating the demo table: $(demo_rows) rows of web analytics in $@ (once)"
	"$(release)/grouse-datagen" hits --rows $(demo_rows) --out $@

demo: binary data/hits.parquet ## the main job on a table of 10 million rows
	@python3 scripts/demo.py target/release/grouse bench/demo.sql

test: build ## all tests, Rust and Python
	cargo test --release --locked --workspace --no-run
	@$(python) scripts/test.py

check: fmt clippy deny doc docs test ## the gate: fmt, clippy, cargo-deny, docs, tests

fmt: setup
	cargo fmt --all --check

clippy: setup
	cargo clippy --release --locked --workspace --all-targets -- -D warnings

doc: setup
	RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --workspace --no-deps

docs: ## the documentation as a site in target/docs
	@scripts/venv.sh .docs-venv docs/requirements.txt
	@.docs-venv/bin/mkdocs build --strict --quiet

deny: setup $(cargo_deny)
	"$(cargo_deny)" --locked --all-features check licenses bans sources
	@if timeout 120 "$(cargo_deny)" fetch db >/dev/null 2>&1; then "$(cargo_deny)" --locked --all-features check advisories; \
	else echo "advisories: SKIPPED, the advisory database cannot be reached from here"; fi

$(tools)/bin/cargo-deny:
	cargo install --locked --root "$(tools)" cargo-deny

bench: build ## grouse and its peers, answers checked, results under bench/record
	@$(MAKE) -C bench PYTHON="$(abspath $(python))" BIN="$(abspath $(release))"

fuzz: setup ## libFuzzer on each target of fuzz/ for FUZZ_SECONDS (60), where a nightly toolchain and cargo-fuzz can be had
	@scripts/fuzz.sh "$(tools)" $(or $(FUZZ_SECONDS),60)

soak: build ## the long runs: big fuzz, 10^8 rows; results under tests/record
	cargo test --release --locked --workspace --no-run
	@$(python) scripts/test.py --soak

wheel: ordered ## target/dist/grouse-*.whl, a wheel for other machines with the same C library or a newer one
	@$(python) scripts/wheel.py --release --name "$(wheel_name)" "$(release)" target/dist

dist: wheel ## that wheel, an archive and a Debian package of the shell, an archive of the ADBC driver, in target/dist
	@$(python) scripts/dist.py $(shell) target/dist
	@scripts/strip.sh "$(driver)" target/release/$(notdir $(driver))
	@$(python) scripts/driver.py target/release/$(notdir $(driver)) target/dist

# For processors before AVX2: everything is compiled once more, in a folder of its own.
wheel-older: ## a wheel for older processors, named grouse-x86-64-v2; compiles everything once more
	@RUSTFLAGS="-C target-cpu=x86-64-v2" CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)-v2" \
	$(MAKE) wheel wheel_name=grouse-x86-64-v2 shell=target/release/grouse-x86-64-v2

clean: ## what this clone holds; the build cache stays
	rm -rf target .venv .bench-venv .docs-venv data
