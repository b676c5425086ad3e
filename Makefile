# Each target is one command on a fresh machine; what is missing is installed, or named in one line.
SHELL := /bin/sh
CARGO ?= cargo

.PHONY: help demo run test lint unit e2e bench docs fuzz tools

help: ## this list
	@grep -E '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /	/'

demo: tools ## one denial, one fix and the log they leave, without a cluster
	$(CARGO) build --quiet
	$(CARGO) run --quiet --example demo

run: tools ## serve on https://127.0.0.1:8443 without a cluster; certificate under certs/dev
	$(CARGO) run -- serve --standalone --tls-dir certs/dev

test: tools lint unit e2e ## everything that a change must pass

lint: tools
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps

unit: tools
	$(CARGO) test --lib --bins --test rules --test server

e2e: tools ## against a real kube-apiserver, etcd, controllers and scheduler (built once, then cached)
	sh tests/tools.sh go ip
	$(CARGO) test --test e2e

docs: tools ## write what is generated from the code: policies/
	UPDATE_DOCS=1 $(CARGO) test --quiet --lib policies_are_current

bench: tools
	$(CARGO) bench

fuzz: tools ## no input breaks the engine: RUNS executions of each fuzz target (default ten million)
	sh tests/fuzz/run.sh $(RUNS)

tools:
	@sh tests/tools.sh cargo cc
