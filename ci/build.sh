#!/usr/bin/env bash
# Builds the box of BOXFILE with PROFILE, and pushes it to PUSH, if that is not empty. Sets the outputs of the action, and `before`:
# the box that COMPARE_WITH names before the push, with the digest of its manifest.
set -euo pipefail

work=$(mktemp -d "$RUNNER_TEMP/build.XXXXXX")
trap 'rm -r "$work"' EXIT

# Sets an output. A value is a digest, a number or a name that boxbuild has checked, so it has one line.
output() {
    printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}

# Prints a field of a report of boxbuild, or nothing if it is null.
field() {
    jq --raw-output "$2 // empty" "$work/$1.json"
}

args=(build --json --annotations github "--file=$BOXFILE")
[[ -z $PROFILE ]] || args+=("--profile=$PROFILE")
[[ $LOCKED == false ]] || args+=(--locked)
[[ -z $PUSH ]] || args+=("--push=$PUSH")
# Whoever may push to the registry decides what its cache holds, so a box with layers of it is not signed.
if [[ $NO_CACHE == true || -n $IS_SIGNED ]]; then
    args+=(--no-cache)
elif [[ -n $CACHE_FROM ]]; then
    args+=("--cache-from=$CACHE_FROM")
fi

before=
if [[ -n $COMPARE_WITH ]]; then
    # Fetches documents only. A registry without the box is no error: this is the first push. Other errors are in the log.
    if boxbuild pull --dry-run --json -- "$COMPARE_WITH" >"$work/before.json"; then
        before=$(field before .box)
        name=$(field before .reference)
        name=${name%@*}
        # A colon before the last slash is a port.
        [[ ${name##*/} != *:* ]] || name=${name%:*}
        output before "$name@$(field before .registry_digest)"
    fi
fi

# Errors are printed as annotations, and the report has them again.
boxbuild "${args[@]}" >"$work/built.json"

box=$(field built .box)
output box "$box"
if [[ -n $COMPARE_WITH ]]; then
    changed=true
    [[ $box != "$before" ]] || changed=false
    output changed "$changed"
fi
if [[ -n $PUSH ]]; then
    digest=$(field built .pushed.registry_digest)
    output digest "$digest"
    output reference "$(field built .pushed.reference)@$digest"
    output bytes-sent "$(field built .pushed.bytes)"
fi
