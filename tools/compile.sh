#!/bin/sh
# compile.sh WHAT COMMAND…: runs a go command. A person at a terminal who has seen nothing for some seconds reads what it
# does. Elsewhere nothing is added: a chapter compares what its commands print.
what=$1
shift
# This process becomes the command, so its number tells whether the command still runs.
[ ! -t 2 ] || { sleep 3; kill -0 $$ 2>/dev/null && echo "Compiling $what (the first time takes a few minutes)…"; } >&2 &
exec "$@"
