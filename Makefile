# `make` alone lists the targets. CI runs these and nothing else.

GOLANGCI  := .tools/golangci-lint-v2.15.0/golangci-lint
VULNCHECK := .tools/govulncheck-v1.9.0/govulncheck
BENCHTIME ?= 1s
SECONDS   ?= 90
KILLS     ?= 1000
# A count, not a duration: at the end of a duration Go 1.26 can report its own deadline as a failure (go.dev/issue/75804).
FUZZTIME  ?= 100000x
SYSTEMS   := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
BUILD      = CGO_ENABLED=0 go build -trimpath $(VERSIONED)
RACE       = $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && echo -race)
# Runs the command $(1) in the root module, then in bench/, which is a module of its own.
EACH_MODULE = $(1) && if [ -f bench/go.mod ]; then cd bench && $(1); fi

# `make module PATH=x` would take the search path away from the recipe: keep x, restore what the environment had.
ifeq ($(origin PATH),command line)
MODULE := $(PATH)
override PATH = $(shell printenv PATH)
export PATH
endif

.DEFAULT_GOAL := help
.PHONY: bench-table bench-gateway failover help setup build test node demo image kills lint vuln fuzz bench cross completions release module clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: ## Check the Go version and download the modules
	@command -v go >/dev/null || { echo "error: Go is missing. hint: install Go $$(awk '$$1 == "go" {print $$2}' go.mod) or newer from https://go.dev/dl" >&2; exit 1; }
	@go list -m >/dev/null 2>&1 || { echo "error: $$(go version) is too old. hint: go.mod asks for $$(awk '$$1 == "go" {print $$2}' go.mod) or newer, from https://go.dev/dl" >&2; exit 1; }
	@go version
	@$(call EACH_MODULE,go mod download)

build: setup ## Build bin/holdfast; its version comes from the build info
	$(BUILD) -o bin/ ./cmd/holdfast

test: setup ## Vet, then run every test with the race detector in random order
	@[ -n "$(RACE)" ] || echo "note: no C compiler found, so the tests run without the race detector"
	@$(call EACH_MODULE,go vet ./... && go test $(RACE) -shuffle=on ./...)

node: ## Install the Node clients of the end-to-end tests (without them those tests are skipped)
	npm ci --prefix e2e --no-audit --no-fund

demo: build ## Build, then show the main job: calls that survive a failing API, in Go and through the gateway
	bin/holdfast demo
	bin/holdfast serve --demo

image: ## Build the container image holdfast (without a container engine this is skipped)
	@if docker info >/dev/null 2>&1; then docker build -f deploy/docker/Dockerfile -t holdfast . && docker run --rm holdfast version; \
	else echo "image: no container engine answers, skipped"; fi

kills: setup ## Kill KILLS processes (default 1000) at every point of once.Do, on SQLite and, where it is installed, Postgres
	@HOLDFAST_KILLS=$(KILLS) go test -count 1 -v -run TestKillAtEveryPoint ./once

lint: setup $(GOLANGCI) ## Run golangci-lint (.golangci.yml) and go vet
	@$(call EACH_MODULE,go vet ./... && $(CURDIR)/$(GOLANGCI) run ./...)

vuln: setup $(VULNCHECK) ## Look for known vulnerabilities in the code that is reached
	@if $(VULNCHECK) ./... > .tools/vuln.txt 2>&1; then cat .tools/vuln.txt; \
	elif grep -q 'fetching vulnerabilities' .tools/vuln.txt; then echo "vuln: the vulnerability database is not reachable, skipped"; \
	else cat .tools/vuln.txt; exit 1; fi

fuzz: setup ## Fuzz each FuzzXxx for FUZZTIME runs (default 100000x)
	@for t in $$(grep -rHoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir=bench --exclude-dir=node_modules . | sed -E 's|/[^/]+:func |:|'); do \
		echo "fuzz $$t"; go test -run '^$$' -fuzz "^$${t#*:}\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$${t%:*}" || exit 1; done

bench: setup ## Run each benchmark for BENCHTIME (default 1s)
	@$(call EACH_MODULE,go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...)

bench-table: setup ## Print the table of the README: what protection costs, beside other libraries
	@cd bench && HOLDFAST_BENCH_TABLE=1 go test -count 1 -run TestTable -benchtime 100ms

bench-gateway: setup ## Measure the gateway beside ReverseProxy, nginx and HAProxy, for about SECONDS (default 90); apt-get installs the two
	@for p in nginx-light:nginx haproxy:haproxy; do command -v $${p#*:} > /dev/null || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update && apt-get install -y --no-install-recommends $${p%:*}; } > /dev/null || \
		echo "note: $${p#*:} is not to be had here"; done
	@cd bench && go build -o ../bin/bench-gateway ./gateway && ../bin/bench-gateway -seconds $(SECONDS)

failover: setup ## Print the table of the failover benchmark: 16 faults, met by the gateway and by a bare proxy
	@cd e2e/failover && HOLDFAST_FAILOVER_TABLE=1 go test -count 1 -run TestFailover

cross: setup ## Build for Linux, macOS and Windows into dist/
	@for s in $(SYSTEMS); do out=dist/holdfast-$${s%/*}-$${s#*/}; case $$s in windows/*) out=$$out.exe;; esac; \
		echo "$$out"; GOOS=$${s%/*} GOARCH=$${s#*/} $(BUILD) -ldflags '-s -w' -o $$out ./cmd/holdfast || exit 1; done

completions: build ## Write the shell completions into dist/completions/
	@mkdir -p dist/completions
	@for s in bash zsh fish powershell; do bin/holdfast completion $$s > dist/completions/holdfast.$$s || exit 1; done

release: VERSIONED = -buildvcs=true
release: clean cross completions ## Build everything a release carries, with checksums
	@cd dist && sum=$$(command -v sha256sum || echo shasum -a 256) && $$sum holdfast-* completions/* > SHA256SUMS && cat SHA256SUMS

module: ## Rename the module everywhere: make module PATH=github.com/you/holdfast
	@[ -n "$(MODULE)" ] || { echo "usage: make module PATH=github.com/you/holdfast" >&2; exit 2; }
	@old=$$(awk '$$1 == "module" {print $$2}' go.mod); \
	imports='s#^((//)?[[:space:]]*import +([A-Za-z0-9_.]+ +)?")'$$old'(["/])#\1$(MODULE)\4#'; \
	block='/^import \(/,/^\)/ s#^([[:space:]]*([A-Za-z0-9_.]+ +)?")'$$old'(["/])#\1$(MODULE)\3#'; \
	gomod='s#^(module +|require +|replace +|[[:space:]]+)'$$old'([/[:space:]]|$$)#\1$(MODULE)\2#'; \
	fetch='s#(go (get|install|run) )'$$old'([/@`[:space:]]|$$)#\1$(MODULE)\3#g'; \
	edit() { sed -E "$$@" > .module.tmp && cat .module.tmp > "$$f" && rm .module.tmp || exit 1; }; \
	find . -type d \( -name .git -o -name .tools -o -name node_modules -o -name dist \) -prune -o -type f \( -name '*.go' -o -name '*.md' -o -name go.mod \) -print | while read -r f; do \
		case $$f in */go.mod) edit "$$gomod" "$$f";; *) grep -qE "[\"[:space:]]$$old" "$$f" || continue; edit -e "$$imports" -e "$$block" -e "$$fetch" "$$f";; esac; \
		case $$f in *.go) gofmt -w "$$f" || exit 1;; esac; \
	done && go list -m

clean: ## Remove what the other targets made, except the tools
	rm -rf bin dist out

.tools/golangci-lint-%/golangci-lint:
	GOBIN=$(CURDIR)/$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$*

.tools/govulncheck-%/govulncheck:
	GOBIN=$(CURDIR)/$(@D) go install golang.org/x/vuln/cmd/govulncheck@$*
