# Settings that the stages' Makefiles share: for the cluster they work with, and for the machine.
# KUBECONFIG chooses the cluster. The default is the classroom's (`make up` in the repository's root).

BIN := ../bin
KUBECONFIG ?= $(CURDIR)/../.workshop/kubeconfig
KUBECTL ?= $(BIN)/kubectl
GOLANGCI_LINT ?= $(BIN)/golangci-lint

# Targets run one after the other, even with -j: `make uninstall install` means this order.
.NOTPARALLEL:
# With a CDPATH, `cd dist` could lead elsewhere.
unexport CDPATH
# Everything is compiled with one setting of cgo: with two, many packages would be compiled twice.
# `go test -race` needs 1.
CGO_ENABLED ?= 0
export CGO_ENABLED

# The value of a variable if it is set on make's command line: in a shell's environment, it may mean something else.
given = $(if $(filter command,$(firstword $(origin $(1)))),$($(1)))

# These targets ask before they change a cluster that is not the classroom's; YES=1 answers yes. Then they use a copy of
# its kubeconfig, so that switching the context in the meantime sends none of their commands to another cluster.
ifneq (,$(filter install uninstall samples deploy undeploy run cert-manager remove-cert-manager,$(MAKECMDGOALS)))
CONFIRMED := $(shell [ -x $(BIN)/workshop ] || ../tools/bootstrap.sh >&2; \
  KUBECONFIG='$(subst ','\'',$(KUBECONFIG))' $(BIN)/workshop confirm $(if $(call given,YES),--yes))
$(if $(CONFIRMED),,$(error nothing was changed))
override KUBECONFIG := $(CONFIRMED)
endif
export KUBECONFIG

# $(call compile,WHAT,COMMAND) shows and runs a go command. If that takes more than a few seconds, a message on the
# terminal says what is being compiled.
define compile
@echo '$(2)'
@../tools/compile.sh '$(1)' $(2)
endef

# $(call refuse_if_used,CRD,KINDS,LOSS) fails if the cluster has resources of the CRD, unless FORCE=1 is on make's
# command line. The targets that delete the CRD call it first if no manifest can bring back what is lost with the
# resources.
define refuse_if_used
@$(if $(call given,FORCE),:,crd=$$($(KUBECTL) get crd/$(1) --ignore-not-found --output=name) && { [ -z "$$crd" ] || \
  { names=$$($(KUBECTL) get $(1) --all-namespaces --output=name) || { echo 'nothing was removed, because the $(2) can'\''t be counted: if there are none that you need, add FORCE=1' >&2; exit 1; }; \
    [ -z "$$names" ] || { echo "nothing was removed, because there are $(2) ($$(echo "$$names" | grep -c '')), and $(3) would be lost with them: delete them first, or add FORCE=1" >&2; exit 1; }; }; })
endef
