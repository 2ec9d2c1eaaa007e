#!/usr/bin/env bash
# Writes into the step summary how the box BOX differs from BEFORE, the box that the registry had. REFERENCE names BOX if it was
# pushed. CHANGED is empty if there is nothing to compare with.
set -euo pipefail

# Other text than this script's own, digests and names of registries comes from `boxbuild diff`, which escapes what a box names.
summary() {
    printf '%s\n\n' "$1" >>"$GITHUB_STEP_SUMMARY"
}

if [[ -n $REFERENCE ]]; then
    summary "Pushed \`$REFERENCE\`, the box \`$BOX\`."
else
    summary "Built the box \`$BOX\`."
fi
case $CHANGED in
'') exit ;;
false)
    summary 'It is the box that the registry had before.'
    exit
    ;;
esac
if [[ -z $BEFORE ]]; then
    summary 'The registry had no box there that this job may read, so it is compared with none.'
    exit
fi
status=0
# Names in the registry also find boxes of which the store has only a part, and fetch only what is compared.
comment=$(boxbuild diff --format markdown --annotations github -- "$BEFORE" "${REFERENCE:-$BOX}") || status=$?
# 5 means that the boxes differ.
if [[ $status == 0 || $status == 5 ]]; then
    summary "$comment"
else
    summary 'It could not be compared with the box before: see the log of this step.'
fi
