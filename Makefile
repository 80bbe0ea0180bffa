# Two commands do everything on a fresh machine: `make up` and `make test`. Each installs what is missing and says so.
# `make test ONLY=unit` runs one part of the tests: unit, architecture, integration, robustness, conformance or e2e (several: with commas).
# `make bench` measures; `make bench PAIR=COMMIT` compares the CPU time per request with another commit's build.
SHELL := /bin/bash
NODE ?= node
STAMP := node_modules/.package-lock.json
comma := ,

.PHONY: up down test test-node test-vm suites soak lint bench status site reference pictures build packages test-packages generate clean

up: build packages
	bin/skiff up

down:
	bin/skiff delete

build: dist/.built

test: build test-packages
	$(NODE) scripts/test.mjs $(if $(ONLY),--only $(ONLY)) $(TEST_ARGS)

# All tests but e2e with another Node.js, whose binary comes from the npm registry: `make test-node NODE_VERSION=24`, with ONLY for one part.
NODE_VERSION ?= 24
test-node: build test-packages
	$(NODE) scripts/otherNode.mjs $(NODE_VERSION) node scripts/test.mjs --only $(or $(ONLY),unit$(comma)architecture$(comma)integration$(comma)robustness$(comma)conformance) $(TEST_ARGS)

# What needs another kernel and a boot, on a stock Debian 12 that qemu emulates: cgroup v2, AppArmor, IPVS, --autostart over a power cut. Takes a quarter of an hour,
# the first time some minutes more for the disk. Needs root.
test-vm: build
	@scripts/packages.sh --machine
	$(NODE) scripts/machine/run.mjs $(TEST_ARGS)

# Other people's clients against a simulated cluster; `make suites ONLY=client-go` runs one. A suite whose toolchain is missing is skipped by name.
# `make suites PICK=NUMBER` runs one of those whose toolchain is there, and fails when there is none.
suites: build
	$(NODE) --import tsx test/suites/runSuites.ts $(if $(PICK),--pick $(PICK)) $(ONLY)

# Long rounds, of which `make test` runs a share: 50 rounds of faults under PostgreSQL, half an hour; then every field of every kind with the largest values that a
# request may carry, which takes hours. `make soak ONLY=postgres` or `ONLY=budget` runs one of the two.
soak: build test-packages
	$(if $(filter-out budget,$(or $(ONLY),all)),SKIFF_SOAK=1 $(NODE) --import tsx --test --test-timeout=86400000 test/e2e/postgres.test.ts)
	$(if $(filter-out postgres,$(or $(ONLY),all)),SKIFF_SOAK=1 $(NODE) --import tsx --test --test-timeout=86400000 test/robustness/budget/budget.test.ts)

lint: $(STAMP)
	npx --no-install biome ci .
	npx --no-install tsc -p .
	npx --no-install tsc -p src/ui/page

bench: build packages
	$(NODE) --import tsx $(if $(PAIR),bench/pair.ts $(PAIR),bench/run.ts)

status: build test-packages
	$(NODE) scripts/test.mjs --status docs/status.md

# The documentation as a site of plain files in dist/site: open index.html, or put the folder on any web server.
site: $(STAMP)
	$(NODE) scripts/site/build.mjs dist/site

# Writes docs/reference and docs/layers.svg from the source.
reference: build
	$(NODE) --import tsx scripts/reference/write.mjs docs

# Takes the pictures of the page, docs/ui-*.png, from a simulated cluster.
pictures: build test-packages
	$(NODE) scripts/pictures/make.mjs docs

# Debian packages that real nodes need, and those that only the tests need beside them; without root, or off Linux, only says what is missing.
packages:
	@scripts/packages.sh

test-packages:
	@scripts/packages.sh --tests

$(STAMP): package.json package-lock.json
	@command -v $(NODE) >/dev/null && command -v npm >/dev/null || { echo "Node.js >= 20.19 with npm must be installed first"; exit 6; }
	@echo "npm packages: installing what package-lock.json names into node_modules"
	@npm install --no-save --no-audit --no-fund --loglevel=error || { echo "npm packages: npm could not install them; see above"; exit 6; }
	@touch $(STAMP)

dist/.built: $(STAMP) $(shell find src scripts -type f 2>/dev/null)
	$(NODE) scripts/build.mjs
	@touch dist/.built

# Writes src/api/gen from the pinned release of Kubernetes.
generate: $(STAMP)
	scripts/generate.sh

clean:
	rm -rf dist node_modules
