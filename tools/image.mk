# The Makefiles of stages 2 to 6 share these settings for building images. Each of them sets PROGRAM, the program's
# name, and PACKAGE, the Go package that it is built from.

# The absolute path of kustomize, for recipes that change into a folder.
KUSTOMIZE_PATH = $(if $(findstring /,$(KUSTOMIZE)),$(abspath $(KUSTOMIZE)),$(KUSTOMIZE))

# The version and the commit that --version, the log and the image's labels show. A release sets VERSION=… on make's
# command line.
IMAGE_VERSION = $(if $(filter command environment,$(firstword $(origin VERSION))),$(VERSION),$(shell git describe --tags --always --dirty 2>/dev/null || echo unknown))
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
STAMPS = -X main.version=$(IMAGE_VERSION) -X main.revision=$(REVISION)

# The platform of an image, such as linux/arm64; empty means this machine's. docker-buildx builds for all of PLATFORMS.
PLATFORM ?=
PLATFORMS ?= linux/amd64,linux/arm64
# Other images to build from, for example those of a mirror; empty means the images that the Dockerfile names.
BUILDER ?=
BASE ?=
STAMP_ARGS = --build-arg VERSION=$(IMAGE_VERSION) --build-arg REVISION=$(REVISION)
IMAGE_ARGS = $(if $(PLATFORM),--platform=$(PLATFORM)) $(STAMP_ARGS) $(if $(BUILDER),--build-arg BUILDER=$(BUILDER)) $(if $(BASE),--build-arg BASE=$(BASE))

# For OFFLINE=1: this machine's CA certificates, with which a program verifies servers such as a cloud's API. These are
# the places where Linux distributions and macOS keep them.
CA_CERTIFICATES ?= $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
  /etc/ssl/ca-bundle.pem /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/ssl/certs/ca-bundle.crt /etc/ssl/cert.pem))
OFFLINE_PLATFORM = $(or $(PLATFORM),linux/$(shell go env GOHOSTARCH))
# Without --no-cache, Docker's legacy builder would take another platform's files from its cache. Nothing is lost,
# because the image consists of only two copied files.
OFFLINE_ARGS = --no-cache --platform=$(OFFLINE_PLATFORM) $(STAMP_ARGS) --build-arg TITLE=$(PROGRAM)

# Everything that ../tools/offline.Dockerfile needs. The stage's Dockerfile builds the same program with the same flags.
define offline_context
	@[ -s "$(CA_CERTIFICATES)" ] || \
	  { echo 'no CA certificates at "$(CA_CERTIFICATES)": name a file that contains some with CA_CERTIFICATES=…' >&2; exit 1; }
	rm -rf dist/image && mkdir -p dist/image
	cp "$(CA_CERTIFICATES)" dist/image/ca-certificates.crt && chmod 644 dist/image/ca-certificates.crt
	GOWORK=off CGO_ENABLED=0 GOOS=linux GOARCH=$(word 2,$(subst /, ,$(OFFLINE_PLATFORM))) go build -trimpath -buildvcs=false \
	  -ldflags "-s -w $(STAMPS)" -o dist/image/manager $(PACKAGE)
endef
