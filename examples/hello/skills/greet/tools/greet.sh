#!/bin/sh
# Greets the person that the first argument names.
if [ $# -ne 1 ]; then
    echo "usage: greet.sh NAME" >&2
    exit 2
fi
printf 'Hello, %s.\n' "$1"
