# Every target runs from a plain clone. `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# One set of flags for everything that is compiled: Caddy takes minutes to compile
# cold, and every further set would compile it once more. The tags drop ACME
# certificate stores that a gateway has no use for.
TAGS := nobadger,nomysql,nopgx
FLAGS := -trimpath -tags=$(TAGS)
export GOFLAGS := $(filter-out $(FLAGS),$(shell go env GOFLAGS 2>/dev/null)) $(FLAGS)
# Pure Go: no C compiler needed, runs on any libc. Only the race detector needs cgo.
export CGO_ENABLED := 0

# The race detector, but for SQLite and its C library with its allocator, which are C translated to Go: that is not ours, takes
# a lock of its own and no goroutine, and took three quarters of the time of what uses it.
RACE := -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false -gcflags=modernc.org/memory=-race=false

VERSION ?=
FUZZTIME ?= 5s
# Of cluster-test.
TRIALS ?= 10000
EXPIRIES ?= 1000
KILLS ?= 100
# Of race and postgres-test. (There, value: a pattern that ends in "$)" would be taken for a variable's name.)
SUITES ?= .
# Of faults.
CYCLES ?= 1000

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/durward (VERSION=v1.2.3 names the release)
	go build -ldflags="$(if $(VERSION),-X main.version=$(VERSION))" -o bin/durward ./cmd/durward

# Neither development mode nor tables of symbols: the stacks of errors need none.
.PHONY: production
production: ## build bin/production/durward for production, without development mode (VERSION=v1.2.3 names the release)
	go build -tags=$(TAGS),nodev -ldflags="-s -w$(if $(VERSION), -X main.version=$(VERSION))" -o bin/production/durward ./cmd/durward

# The certificates of authorities that the image's gateway trusts.
CERTIFICATES ?= /etc/ssl/certs/ca-certificates.crt

.PHONY: image-root
image-root: production ## bin/image: the files of the container image, which the Dockerfile copies
	rm -rf bin/image
	install -D -m 0755 bin/production/durward bin/image/root/usr/local/bin/durward
	install -D -m 0644 caddyfile/edge.caddyfile bin/image/root/etc/durward/Caddyfile
	install -D -m 0644 $(CERTIFICATES) bin/image/root/etc/ssl/certs/ca-certificates.crt
	echo 'durward:x:65532:65532::/var/lib/durward:/nonexistent' >bin/image/root/etc/passwd
	echo 'durward:x:65532:' >bin/image/root/etc/group
	chmod 0644 bin/image/root/etc/passwd bin/image/root/etc/group
	install -d -m 1777 bin/image/root/tmp
	install -d -m 0755 bin/image/empty

.PHONY: image-test
image-test: ## build the image with buildah (Debian, as root; nothing is pulled), run it as its user, read-only; its compressed size
	.ci/with-go .ci/image

.PHONY: release
release: ## bin/release of a clean checkout: binaries, .deb, .rpm, SBOMs, sums, signature (VERSION=v1.2.3 MINISIGN_KEY=FILE; see docs/releasing.md)
	.ci/with-go go run -C deploy/release . $(if $(VERSION),-version $(VERSION))

.PHONY: release-twice
release-twice: ## release the committed state twice, in two folders, the second time with an empty compiler cache, and compare the bytes
	.ci/with-go .ci/release-twice

.PHONY: packages-test
packages-test: ## the .deb installed, started, upgraded, removed, purged (Debian without durward, as root)
	.ci/with-go .ci/packages

.PHONY: release-check
release-check: ## the tests of what makes a release: contents of packages, same bytes, signature; builds no gateway
	.ci/with-go go test -C deploy/release ./...

.PHONY: setup
setup: ## install what the tests need (Debian as root), elsewhere say what is missing
	.ci/setup

.PHONY: prepare
prepare: setup ## set up, then download, install and compile all that the tests use
	.ci/with-go env RACE="$(RACE)" .ci/prepare

.PHONY: quick
quick: ## the tests beside the code, without the race detector; what has not changed comes from the cache
	.ci/with-go bash -c 'units=$$(.ci/units) && go test $$units'

.PHONY: test
test: prepare ## prepare, then run every test, a line for each package; those of internal and storage with the race detector
	.ci/with-go env RACE="$(RACE)" .ci/test

.PHONY: race
race: ## under the race detector: tests and gateway of the black-box suites (SUITES='Policy|Approvals' for some), and what `make test` runs without it
	$(if $(filter .,$(value SUITES)),.ci/with-go bash -c 'units=$$(.ci/units others) && CGO_ENABLED=1 go run ./integration/report go test -json $(RACE) -count=1 -timeout=60m $$units')
	.ci/with-go go run ./integration/report env CGO_ENABLED=1 DURWARD_TEST_RACE="$(RACE)" go test -json $(RACE) -count=1 -timeout=60m -run '$(value SUITES)' ./integration ./integration/cluster ./integration/faults

.PHONY: allocations
allocations: ## what promises not to allocate, to stay small, or to cost little: under the race detector, which allocates itself and is slow, these tests skip
	.ci/with-go go test -count=1 -run 'Allocat|Memory|M20' $$(grep -rlE '^func Test[A-Za-z0-9]*(Allocat|Memory|M20)' --include='*_test.go' internal | xargs -n 1 dirname | sort -u | sed 's|^|./|')

.PHONY: lint
lint: ## formatting, vet, linters, dead code, the direction of imports
	.ci/with-go .ci/lint

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (default 5s) each
	.ci/with-go .ci/fuzz $(FUZZTIME)

.PHONY: console-test
console-test: ## the console in Chromium: every screen, for each kind of user, in light and dark, full and empty; by keyboard; hostile names
	.ci/with-go env DURWARD_CONSOLE=all go test -count=1 -timeout=20m -v -run Console ./integration

.PHONY: screenshots
screenshots: ## docs/screenshots: the README's pictures of the console, with demo data
	mkdir -p docs/screenshots
	.ci/with-go env DURWARD_SCREENSHOTS="$(CURDIR)/docs/screenshots" go test -count=1 -timeout=10m -run TestScreenshots ./integration

.PHONY: attacks
attacks: ## the short attack suites against the built binary
	.ci/with-go go test -count=1 -run Attack ./integration/...

# Over each of the HTTP clients towards upstreams.
.PHONY: streams
streams: ## the bounds of event streams and of load: 10,000 clients that go away in mid-stream, clients and upstreams that misbehave
	for client in "" net_http; do \
	  .ci/with-go env DURWARD_TEST_STRICT=1 DISCONNECTS=10000 OVERLOAD_SECONDS=10 DURWARD_TEST_TRANSPORT=$$client go test -count=1 -timeout=40m -parallel=1 -v \
	    -run 'Stream|Events|Disconnects|Slow|Flood|Vanished|Expiry|LegacySSE|Shedding|MemoryPressure|Overload|UpstreamDead|Descriptors|PolicyChanges' ./integration || exit 1; \
	done

.PHONY: reload-test
reload-test: ## 100 reloads under 1,000 event streams and 200 calls/s, on an address, over TLS (1 call may be lost) and on an inherited socket
	.ci/with-go env RELOAD_STREAMS=1000 RELOAD_RATE=200 RELOAD_COUNT=100 go test -count=1 -timeout=30m -v -run 'UnderLoad$$' ./integration
	.ci/with-go env RELOAD_RATE=200 RELOAD_COUNT=100 go test -count=1 -timeout=30m -v -run 'UnderLoadTLS$$' ./integration
	.ci/with-go env RELOAD_STREAMS=1000 RELOAD_RATE=200 RELOAD_COUNT=100 RELOAD_LISTENER=inherited go test -count=1 -timeout=30m -v -run 'UnderLoad$$' ./integration

.PHONY: rekey-test
rekey-test: ## master key and data keys rotated under 200 calls/s that open what is sealed, on each store, 5 minutes: none fails
	for store in sqlite postgres; do \
	  .ci/with-go env DURWARD_TEST_STORE=$$store REKEY_WHOLE=1 REKEY_RATE=200 REKEY_USERS=400 go test -count=1 -timeout=20m -v -run RekeyUnderLoad ./integration || exit 1; \
	done

.PHONY: postgres-test
postgres-test: ## the suites of the built binary once more, with everything in PostgreSQL (SUITES='Policy|Approvals' for some)
	.ci/with-go go test -count=1 -run NextVersion ./storage/postgres
	.ci/with-go env DURWARD_TEST_STORE=postgres go test -count=1 -timeout=40m -run '$(value SUITES)' ./integration

.PHONY: upgrade-test
upgrade-test: ## data of the last tag's version, or of the commit FROM, on each store: this version goes on with it
	.ci/with-go .ci/upgrade "$(FROM)"

.PHONY: cluster-test
cluster-test: ## three gateways on one PostgreSQL, about an hour: the figures of docs/postgresql.md (TRIALS=1000 EXPIRIES=100 KILLS=5 for a look)
	.ci/with-go env DURWARD_TEST_STRICT=1 CLUSTER_TRIALS=$(TRIALS) CLUSTER_EXPIRIES=$(EXPIRIES) CLUSTER_KILLS=$(KILLS) CLUSTER_APPROVALS=$(KILLS) CLUSTER_LIMIT=600 CLUSTER_LIMIT_ROUNDS=3 go test -count=1 -timeout=4h -v ./integration/cluster

.PHONY: faults
faults: ## 1,000 kill -9 and 1,000 stops of PostgreSQL under writes, an hour: nothing acknowledged is lost (CYCLES=50 for a look)
	.ci/with-go env DURWARD_TEST_STRICT=1 FAULT_KILLS=$(CYCLES) FAULT_STOPS=$(CYCLES) FAULT_BACKUPS=$$(($(CYCLES) / 5)) go test -count=1 -timeout=6h -v ./integration/faults

# The packages that decide.
MUTANTS ?= $(addprefix internal/,policy/engine policy/approval identity/authn identity/token seal credential/connection strictjson proxy/http1 mcp/listfilter ratelimit/window llm/metering) \
	internal/audit,internal/audit/format,internal/audit/segments,internal/audit/query,internal/audit/verify,internal/audit/record

.PHONY: mutants
mutants: ## change the packages that decide, one place at a time: tests notice, or integration/mutants/survivors.txt says why not (an hour)
	.ci/with-go go run ./integration/mutants -explained integration/mutants/survivors.txt $(MUTANTS)

.PHONY: conformance
conformance: ## the official MCP conformance suites, 30 runs each, directly and through the gateway, and 6 under a policy that grants a part
	.ci/with-go env CONFORMANCE_RUNS=30 go test -count=1 -timeout=30m -v -run Conformance ./integration/...

# What CI runs: FORM=short.
FORM ?= all

.PHONY: world
world: ## MCP servers, clients, identity providers of others, directly and through the gateway; writes docs/compatibility.md (FORM=short for CI's)
	.ci/with-go integration/world/setup $(FORM)
	.ci/with-go env DURWARD_WORLD=$(FORM) DURWARD_WORLD_REPORT=$(if $(filter all,$(FORM)),$(CURDIR)/docs/compatibility.md) go test -count=1 -timeout=40m ./integration/world

.PHONY: world-newest
world-newest: ## the same with the newest version of everything, into bin/world/newest/compatibility.md
	.ci/with-go integration/world/setup newest anew
	.ci/with-go env DURWARD_WORLD=newest DURWARD_WORLD_REPORT=$(CURDIR)/bin/world/newest/compatibility.md go test -count=1 -timeout=40m ./integration/world

.PHONY: bench
bench: ## performance against plain Caddy, about 13 minutes (BENCH="-rounds 1 -secs 1 -only P1" for a look)
	.ci/with-go go run ./integration/bench/run $(BENCH)

.PHONY: audit-bench
audit-bench: ## searches in an audit log of ROWS calls (default 10,000,000), in SQLite and PostgreSQL
	DURWARD_AUDIT_ROWS=$(or $(ROWS),10000000) .ci/with-go go test -run NONE -bench Search -benchtime 100x -timeout 60m ./internal/audit/query

.PHONY: chart-test
chart-test: ## what Helm says about deploy/helm (builds Helm the first time)
	.ci/with-go .ci/chart

# Without the clients of all clouds in which Prometheus can look for its targets.
PROMTOOL := go run -C deploy/prometheus -tags=remove_all_sd github.com/prometheus/prometheus/cmd/promtool

.PHONY: rules-test
rules-test: ## alerts and recording rules of deploy/prometheus, checked and tested with promtool (builds it the first time)
	.ci/with-go $(PROMTOOL) check rules --lint=all --lint-fatal recording.yaml alerts.yaml
	.ci/with-go $(PROMTOOL) test rules tests.yaml

.PHONY: docs-site
docs-site: ## bin/site: a web site of the pages of this checkout, with a search; open bin/site/index.html
	.ci/with-go go test -C deploy/site -count=1 ./...
	.ci/with-go go run -C deploy/site .

.PHONY: vuln
vuln: ## known vulnerabilities of the dependencies (needs the Go vulnerability database)
	.ci/with-go go run golang.org/x/vuln/cmd/govulncheck@v1.8.0 ./...

.PHONY: clean
clean: ## remove what the other targets built
	@# Go keeps downloaded modules read-only.
	[ ! -d bin ] || chmod -R u+w bin
	rm -rf bin
