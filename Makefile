# Sluice. `make help` lists the targets; budgets are minutes on two cores.

GO      ?= go
TOOLS   := $(CURDIR)/.bin
LINT    := $(TOOLS)/golangci-lint
LINT_VERSION := v2.15.0

# A clone that git does not trust (another owner) must build all the same.
VCS     := $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)
BUILD   := CGO_ENABLED=0 $(GO) build $(VCS) -trimpath

VERSION ?= dev
IMAGE   ?= localhost/sluice
RELEASE := CGO_ENABLED=0 GOOS=linux $(GO) build $(VCS) -trimpath -ldflags '-s -w -X main.version=$(VERSION)'

.PHONY: build dist image demo test test-fast race product sim sim-real mutants lint vet shell sudoers generate in-step \
	alerts bench component fuzz ship e2e e2e-up e2e-down tools setup clean help

build: ## bin/sluice, static, no cgo
	$(BUILD) -o bin/sluice ./server

dist: ## dist/sluice-linux-amd64 and -arm64, stripped, VERSION inside (3 min)
	GOARCH=amd64 $(RELEASE) -o dist/sluice-linux-amd64 ./server
	GOARCH=arm64 $(RELEASE) -o dist/sluice-linux-arm64 ./server

image: dist ## container images for both architectures, by buildah, on Debian as root (4 min, 3 of them for dist)
	deploy/docker/assemble dist dist/image
	deploy/docker/build dist/image $(IMAGE) $(VERSION)

demo: build ## replace four busy simulated VMs, and count the jobs that were cut (1 min)
	bin/sluice demo --once

test: ## everything below, and what it needs: the bar for a merge (45 min bare, 15 warm)
	@.ci/test

test-fast: ## pure Go, no network, no root (2 min)
	CGO_ENABLED=0 $(GO) test $(VCS) -short ./...

race: ## go test -race ./... (8 min)
	@.ci/go-test race -race -timeout 20m ./...

product: ## whole: the drain's table over its cross product, every crash point, every script (5 min)
	@.ci/go-test product -count=1 -timeout 15m -run 'CrossProduct|AnyInstant|AnyPoint|LostAnswer|Scripts' ./internal/fleet ./internal/engine ./internal/cli ./test/chaos

N ?= 20000
SEED ?= 1
sim: ## N=20000 simulated worlds over the engine's own steps, from SEED=1 on; prints worlds/s, and of a failure seed and story; 20000 also try that a sabotaged engine is caught (2 min)
	@SLUICE_WORLDS=$(N) SLUICE_SEED=$(SEED) .ci/go-test sim -count=1 -timeout 6h -run 'Promise$(if $(filter 20000,$(N)),|Sabotaged)' ./test/worlds

sim-real: N = 200
sim-real: ## N=200 worlds in real time around the real binary, whose processes are killed; no root (3 min)
	@SLUICE_REAL_WORLDS=$(N) SLUICE_SEED=$(SEED) .ci/go-test sim-real -count=1 -timeout 30m ./test/worlds/real/...

mutants: ## the code made wrong in some 90 ways: each is noticed by a test; ONLY=name tries one and shows how (1 min; 3 after a change of fleet or engine)
ifdef ONLY
	SLUICE_MUTANT=$(ONLY) $(GO) test $(VCS) -tags mutants -count=1 -v -run EveryMutantIsCaught ./test/mutants
else
	@.ci/go-test mutants -tags mutants -count=1 -timeout 30m ./test/mutants
endif

lint: $(LINT) ## golangci-lint (3 min; the first time 6 more to build it)
	$(LINT) run --allow-parallel-runners ./...
	cd test/ship/kustomize && $(LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...

vet: ## go vet, the code behind build tags too (2 min)
	$(GO) vet $(VCS) ./...
	$(GO) vet $(VCS) -tags e2e,component,alerts,ship,mutants ./test/...
	$(GO) -C test/ship/kustomize vet $(VCS) ./...

shell: ## shellcheck over every shell script (1 min)
	@.ci/shell

sudoers: ## visudo over deploy/sudoers (1 min)
	@for file in deploy/sudoers/*; do case $$file in *.md|*.go) ;; *) visudo -cf "$$file" || exit 1;; esac; done

generate: ## make generated files anew (2 min)
	$(GO) generate ./...

in-step: ## generated files are what generate makes (2 min)
	@.ci/in-step

alerts: ## alert rules by promtool; a drain that overruns before a real Prometheus and Alertmanager (2 min)
	@.ci/go-test alerts -tags alerts -count=1 -timeout 10m ./test/alerts

bench: ## print the numbers of the design's table (10 min; the end-to-end ones need root)
	@.ci/bench

component: ## the CI/CD component in real pipelines of gitlab-ci-local, against a simulated fleet (5 min)
	@.ci/component-tool
	@.ci/go-test component -tags component -count=1 -timeout 15m ./test/component/...

ship: dist ## images built and run, unit, pipeline, what Kubernetes reads; Debian, root (4 min)
	deploy/docker/assemble dist dist/image
	@.ci/go-test ship -tags ship -count=1 -timeout 20m ./test/ship
	@.ci/go-test -C test/ship/kustomize ship-kustomize -count=1 ./...

fuzz: ## every fuzz target for FUZZTIME=60s (make test: 3s); what fails is kept under testdata/fuzz (12 min)
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
