#!/bin/sh
# Builds bin/workshop, the command behind the Makefile. It builds outside the workspace, so that a stage with a broken
# go.mod doesn't break the other make targets. It prints a line before the first build, when a later build takes time
# (at a terminal), and when an old bin/workshop is used. After a failure, its last line says what is wrong or what to do.
set -u
# A CDPATH or GOFLAGS in a learner's environment could change where cd goes and how go builds.
unset CDPATH
export GOFLAGS=-buildvcs=false
cd "$(dirname "$0")/.." || exit 1

fail() {
	echo "workshop: $1" >&2
	exit 1
}

case $PWD in
*:*) fail "the path of this folder has a colon, which separates the folders of a PATH: move it ($PWD)" ;;
esac

needed=$(sed -n 's/^go //p' go.mod)
install="install Go $needed or newer from https://go.dev/dl/"
command -v go >/dev/null 2>&1 || fail "the go command is not on your PATH: $install"

# outdated keeps the old bin/workshop, so that commands that don't need the missing module still work.
outdated() {
	echo "workshop: bin/workshop can't be rebuilt now, so the old one is used ($(echo "$1" | head -n 1))" >&2
	exit 0
}

# explain says what to do about the go command's message.
explain() {
	case $1 in
	*"requires go >="* | *"invalid go version"* | *"requires newer"*) fail "this Go is too old ($(cd / && go env GOVERSION 2>/dev/null)): $install" ;;
	*"no space left"* | *"quota exceeded"*) fail "the disk is full: free some space (the first build needs about 7 GB) and run the same command again" ;;
	*"HOME"*"defined"* | *"module cache not found"*) fail "Go has no place for its caches: set HOME, or GOCACHE, GOMODCACHE and WORKSHOP_CACHE, to directories that you can write to" ;;
	*"read-only file system"* | *"permission denied"*) fail "Go cannot write its caches or bin/: set GOCACHE, GOMODCACHE and WORKSHOP_CACHE to directories that you can write to ($(echo "$1" | grep -E 'read-only|permission' | head -n 1))" ;;
	*"dial tcp"* | *"no such host"* | *"proxyconnect"* | *"timeout"* | *"connection refused"* | *"network is unreachable"* | *"GOPROXY=off"*)
		[ ! -x bin/workshop ] || outdated "$1"
		fail "Go modules could not be downloaded: connect to the internet (or set GOPROXY to a module proxy that you can reach) and run the same command again"
		;;
	esac
	echo "$1" >&2
	fail "bin/workshop could not be built: go's message is above"
}

have=$(GOWORK=off go env GOVERSION 2>&1) || explain "$have"
oldest=$(printf '%s\n%s\n' "${have#go}" "$needed" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)
[ "$oldest" = "$needed" ] || [ "${have#go}" = "${needed%.0}" ] || fail "this Go is too old ($have): $install"

if [ ! -x bin/workshop ]; then
	echo "Building bin/workshop with $have (only once; missing modules are downloaded first)."
elif [ -t 2 ]; then
	# As in compile.sh, only a person at a terminal sees this message.
	{ sleep 3; kill -0 $$ 2>/dev/null && echo "Rebuilding bin/workshop with $have…"; } >&2 &
fi
export GOOS="$(go env GOHOSTOS)" GOARCH="$(go env GOHOSTARCH)"
message=$(GOWORK=off CGO_ENABLED=0 go build -trimpath -o bin/workshop ./cmd/workshop 2>&1) || explain "$message"
