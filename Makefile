# Sluice. `make help` lists the targets; budgets are minutes on two cores.

GO      ?= go
TOOLS   := $(CURDIR)/.bin
LINT    := $(TOOLS)/golangci-lint
LINT_VERSION := v2.15.0

# A clone that git does not trust (another owner) must build all the same.
VCS     := $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)
BUILD   := CGO_ENABLED=0 $(GO) build $(VCS) -trimpath

.PHONY: build demo test test-fast race product lint vet shell sudoers generate in-step \
	bench fuzz e2e e2e-up e2e-down tools setup clean help

build: ## bin/sluice, static, no cgo
	$(BUILD) -o bin/sluice ./server

demo: build ## replace four busy simulated VMs, and count the jobs that were cut (1 min)
	bin/sluice demo --once

test: ## everything below, and what it needs: the bar for a merge (45 min bare, 15 warm)
	@.ci/test

test-fast: ## pure Go, no network, no root (2 min)
	CGO_ENABLED=0 $(GO) test $(VCS) -short ./...

race: ## go test -race ./... (8 min)
	@.ci/go-test race -race -timeout 20m ./...

product: ## whole: the drain's table over its cross product, every crash point (4 min)
	@.ci/go-test product -count=1 -timeout 15m -run 'CrossProduct|AnyInstant|AnyPoint|LostAnswer' ./internal/fleet ./internal/engine ./test/chaos

lint: $(LINT) ## golangci-lint (3 min; the first time 6 more to build it)
	$(LINT) run --allow-parallel-runners ./...

vet: ## go vet, the code behind build tags too (2 min)
	$(GO) vet $(VCS) ./...
	$(GO) vet $(VCS) -tags e2e ./test/...

shell: ## shellcheck over every shell script (1 min)
	@.ci/shell

sudoers: ## visudo over deploy/sudoers (1 min)
	@for file in deploy/sudoers/*; do case $$file in *.md|*.go) ;; *) visudo -cf "$$file" || exit 1;; esac; done

generate: ## make generated files anew (2 min)
	$(GO) generate ./...

in-step: ## generated files are what generate makes (2 min)
	@.ci/in-step

bench: ## print the numbers of the design's table (10 min; the end-to-end ones need root)
	@.ci/bench

fuzz: ## every fuzz target for $$FUZZTIME (60s); what fails is kept under testdata/fuzz (a minute each)
	@.ci/fuzz

e2e: ## real hosts: systemd, OpenSSH, rootless podman in nspawn machines; root (10 min, 5 more the first time)
	$(GO) run $(VCS) ./test/e2e/cmd/e2e setup
	@.ci/go-test e2e -tags e2e -count=1 -timeout 20m ./test/e2e/...

e2e-up: ## leave a GitLab and two machines standing for people; root (2 min)
	$(GO) run $(VCS) ./test/e2e/cmd/e2e up

e2e-down: ## end what e2e-up or a killed e2e left; root (1 min)
	$(GO) run $(VCS) ./test/e2e/cmd/e2e down

tools: $(LINT) ## build the linter into .bin (6 min)

$(LINT):
	GOBIN=$(TOOLS) CGO_ENABLED=0 $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

setup: ## install the Debian packages that the suites need; root (3 min)
	@.ci/setup

clean: ## remove what was built here
	rm -rf bin dist $(TOOLS) .cache

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
