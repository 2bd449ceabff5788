#!/bin/sh
# compile.sh WHAT COMMAND… runs a go command. If the command takes more than a few seconds, a message on the terminal
# says what is being compiled. Without a terminal, there is no message, because chapters compare their commands' output.
what=$1
shift
# This process becomes the command, so its process ID tells whether the command is still running.
[ ! -t 2 ] || { sleep 3; kill -0 $$ 2>/dev/null && echo "Compiling $what (the first time takes a few minutes)…"; } >&2 &
exec "$@"
