GO ?= go

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB      = golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018

.PHONY: all build test race check vuln fuzz bench quickstart e2e clean

all: check test

build: ## build the canopy binary into bin/, with the toolchain of go.mod
	GOTOOLCHAIN=$$(sed -n 's/^toolchain //p' go.mod) $(GO) build -trimpath -o bin/canopy ./cmd/canopy

test: ## what the README promises: needs only Go
	$(GO) test ./...

race:
	$(GO) test -race ./...

check: ## formatting, vet, staticcheck
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt: $$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags e2e ./e2e/...
	$(GO) run $(STATICCHECK) ./...

vuln: ## known vulnerabilities, against the Go vulnerability database as a module
	scripts/vuln $(GOVULNCHECK) $(VULNDB)

fuzz: ## every fuzz target for FUZZTIME
	scripts/fuzz $${FUZZTIME:-10s}

bench: ## benchmarks beside their floors
	$(GO) test -run '^$$' -bench . -benchmem ./...

quickstart:
	$(GO) run ./examples/quickstart

e2e: ## real npm sellers on a real local chain; installs what it needs
	e2e/run.sh

clean:
	rm -rf bin e2e/peers/node_modules
