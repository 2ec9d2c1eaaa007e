#!/usr/bin/env bash
# Signs the box BOX that was pushed as REFERENCE, how it was built, and its packages, with the private key in SIGNING_KEY. Attaches all
# three to the box in the registry. Does nothing without a key, or if nothing was pushed.
set -euo pipefail

[[ -n $SIGNING_KEY && -n $REFERENCE ]] || exit 0
# A URI has no spaces, and only ASCII.
workflow=$(jq --null-input --raw-output '$ENV.GITHUB_WORKFLOW_REF | split("/") | map(@uri) | join("/") | gsub("%40"; "@")')
# The box that this job has built, whatever the registry shows. This fails if the tag names another box by now.
to=(--key env:SIGNING_KEY --annotations github "--push=${REFERENCE%@*}")
built=("--file=$BOXFILE" --builder-id "$GITHUB_SERVER_URL/$workflow")
[[ -z $PROFILE ]] || built+=("--profile=$PROFILE")

# Provenance and SBOM are there before the signature: whoever finds the signature finds all three.
boxbuild attest "${to[@]}" "${built[@]}" -- "$BOX"
boxbuild sign "${to[@]}" -- "$BOX"
