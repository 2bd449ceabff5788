# The front door of the workshop: `make help` lists its targets.
# It works with GNU make 3.81, the version that macOS has.

SHELL := /bin/sh
WORKSHOP := bin/workshop
STAGES := $(sort $(dir $(wildcard [0-9][0-9]-*/go.mod)))
MODULES := . $(STAGES)
# The packages of all modules.
PACKAGES := ./... $(STAGES:%=./%...)
# Go would otherwise skip tests that have passed before with the same inputs.
COUNT := -count=1
# All Go files except those that git ignores, such as a learner's copies in work/.
GO_FILES := git ls-files -z --cached --others --exclude-standard -- '*.go'

# Targets run one after the other, even with -j: `make -j4 down up` means this order.
.NOTPARALLEL:
# With a CDPATH, `cd tools` could lead elsewhere.
unexport CDPATH
# Everything is compiled with one setting of cgo; see tools/cluster.mk.
CGO_ENABLED ?= 0
export CGO_ENABLED

# Only make's command line counts: many environments have a PORT or a NAME that means something else.
given = $(if $(filter command,$(firstword $(origin $(1)))),$($(1)))

# The classroom cluster's settings: CLUSTER=embedded|kind|current NAME=… PORT=… NODES=…; for kind also KIND_NODE_IMAGE=…
export WORKSHOP_CLUSTER := $(or $(call given,CLUSTER),$(WORKSHOP_CLUSTER))
export WORKSHOP_NAME := $(or $(call given,NAME),$(WORKSHOP_NAME))
# With CLUSTER=current: change the cluster without asking.
export WORKSHOP_YES := $(or $(call given,YES),$(WORKSHOP_YES))

# Use the learner's own copy of a stage.
export WORKSHOP_OWN := $(or $(call given,OWN),$(WORKSHOP_OWN))

# `make stage-1 test` is one command with two goals: a stage, and what to do there.
ifneq (,$(filter stage-%,$(firstword $(MAKECMDGOALS))))
STAGE_GOAL := $(firstword $(MAKECMDGOALS))
VERBS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
.PHONY: $(STAGE_GOAL) $(VERBS)
$(STAGE_GOAL): bootstrap
	@$(WORKSHOP) stage $(STAGE_GOAL) $(VERBS) $(if $(call given,FROM),--from $(FROM)) $(if $(call given,STEP),--step $(STEP)) $(if $(call given,PLAY),--play)
ifneq (,$(VERBS))
$(VERBS): $(STAGE_GOAL) ; @:
endif
.PHONY: bootstrap
bootstrap: ; @tools/bootstrap.sh
else

.PHONY: help
help: ## List the targets
	@echo "make TARGET [CLUSTER=embedded|kind|current] [NAME=cluster] [YES=1: no question with CLUSTER=current]"
	@echo "make stage-N help: list the targets of a stage, such as \`make stage-1 install\`"
	@echo "make stage-N [FROM=N.M: run the steps before this one, but show only their results] [OWN=1: with your own copy]"
	@echo "make stage-N check [PLAY=1: then play the chapter with your copy, up to the last section that is done]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-24s %s\n", $$1, $$2}' Makefile
	@echo
	@for chapter in docs/[0-9]*-*.md; do \
	  number=$${chapter#docs/}; number=$${number%%-*}; \
	  printf '  %-24s %s\n' "stage-$$number" "play chapter $$number: $$(sed -n 's/^# //p' $$chapter | head -n 1)"; \
	done

.PHONY: bootstrap
bootstrap: ; @tools/bootstrap.sh

.PHONY: tools
tools: bootstrap ## Build the control plane, kubectl and the other tools that most targets need into bin/
	@$(WORKSHOP) tools

.PHONY: doctor
doctor: bootstrap ## Check whether this machine is ready, and if not, say how to fix it
	@$(WORKSHOP) doctor

.PHONY: up
up: bootstrap ## Start the classroom cluster (PORT=…, NODES=…; with CLUSTER=kind also KIND_NODE_IMAGE=…)
	@$(WORKSHOP) up $(if $(call given,PORT),--port $(PORT)) $(if $(call given,NODES),--nodes $(NODES))

.PHONY: down
down: bootstrap ## Remove the classroom cluster and everything in it
	@$(WORKSHOP) down

.PHONY: status
status: bootstrap ## Show components, version, nodes, memory and kubeconfig
	@$(WORKSHOP) status

.PHONY: reset
reset: bootstrap ## Empty the cluster (STAGE=N: fail if there is no chapter N)
	@$(WORKSHOP) reset $(if $(call given,STAGE),--stage $(STAGE))

.PHONY: shell
shell: bootstrap ## Start a shell with the settings of kubectl and etcdctl, and bin/ on the PATH
	@$(WORKSHOP) shell

.PHONY: kind-load
kind-load: bootstrap ## Copy the image IMG=… from docker into the kind cluster (CLUSTER=kind)
	@$(WORKSHOP) load $(call given,IMG)

.PHONY: tour
tour: bootstrap ## Play all chapters in order (QUIET=1: a line for each step)
	@$(WORKSHOP) tour $(if $(call given,QUIET),--quiet)

.PHONY: progress
progress: bootstrap ## Show how far you are with the exercises (make stage-N start, make stage-N check|watch|hint|diff|solve|reset [STEP=N.M], make stage-N restore, make stage-N break [NAME])
	@$(WORKSHOP) progress

.PHONY: test
# -vet=off, because the linter runs vet; -w, because a binary without debug information links faster.
test: go_test = go test $(COUNT) -vet=off -ldflags=-w -timeout 30m $(PACKAGES)
test: tools ## Run all tests
	@echo '$(go_test)'
	@tools/compile.sh 'and running the tests' $(go_test)

.PHONY: bench
bench: tools ## Measure what docs/benchmarks.md reports (BUILD=1: only a cold build of the tools; LOAD=1 [STAGE=2] [N=100,500] [IDLE=60s]: only the controllers under load)
	@$(WORKSHOP) bench $(if $(call given,BUILD),--build) $(if $(call given,LOAD),--load) $(if $(call given,STAGE),--stage $(STAGE)) $(if $(call given,N),--resources $(N)) $(if $(call given,IDLE),--idle $(IDLE))

.PHONY: generate
generate: tools ## Regenerate the listings and boxes in the chapters, the manifests and all generated code
	$(WORKSHOP) snippets
	cp tools/go.mod controlplane/pins/go.mod.txt && cp tools/go.sum controlplane/pins/go.sum.txt
	go generate ./internal/greeting
	@set -e; for stage in $(STAGES); do \
	  if grep -q '^generate:' $$stage/Makefile; then $(MAKE) --no-print-directory -C $$stage generate; fi; done

.PHONY: fmt
fmt: ## Format the Go code
	$(GO_FILES) | xargs -0 gofmt -l -w

.PHONY: verify
verify: generate ## Regenerate all files, and check modules, formatting and pages; fail on a mistake, or if git shows a change or an untracked file
	$(WORKSHOP) pages
	@set -e; for module in $(MODULES); do echo "cd $$module && go mod tidy -diff && go build ./..."; \
	  (cd $$module && GOWORK=off go mod tidy -diff && GOWORK=off go build ./...); done
	@unformatted=$$($(GO_FILES) | xargs -0 gofmt -l); [ -z "$$unformatted" ] || { echo "not formatted, run make fmt: $$unformatted"; exit 1; }
	git diff --exit-code
	@untracked=$$(git ls-files --others --exclude-standard); [ -z "$$untracked" ] || { echo "untracked files, commit or ignore them: $$untracked"; exit 1; }

.PHONY: verify-exercises
verify-exercises: tools ## Show that each step's check fails before the step is solved, and passes afterwards (BREAKS=1: also the breaks)
	@$(WORKSHOP) verify-exercises $(if $(call given,BREAKS),--breaks)

.PHONY: lint
lint: bootstrap ## Run golangci-lint on every module
	@$(WORKSHOP) tools golangci-lint
	bin/golangci-lint run $(PACKAGES)
	@set -e; for stage in $(STAGES); do [ ! -f $$stage.golangci.yml ] || cmp 03-kubebuilder-guestbook/.golangci.yml $$stage.golangci.yml; done

.PHONY: clean
clean: ## Remove bin/ (the finished tools stay in the cache)
	rm -rf bin

.DEFAULT:
	@echo "make: there is no target $@; \`make help\` lists all targets" >&2; exit 2
endif
