#!/bin/sh
# Prints the line of CHANGES.md for a mistake. The arguments are in variables: the part of the program and the mistake.
newline='
'
case $TOOL_ARG_PART$TOOL_ARG_MISTAKE in
*"$newline"*)
    echo "An entry is one line."
    exit 2
    ;;
esac
printf -- '- %s: %s.\n' "$TOOL_ARG_PART" "${TOOL_ARG_MISTAKE%.}"
