#!/usr/bin/env bash
# Signs the pushed box REFERENCE, how it was built, and its packages, with the private key in SIGNING_KEY. Attaches all three to the
# box in the registry. Does nothing without a key, or if nothing was pushed.
set -euo pipefail

[[ -n $SIGNING_KEY && -n $REFERENCE ]] || exit 0
how=(--key env:SIGNING_KEY --annotations github)
built=("--file=$BOXFILE" --builder-id "$GITHUB_SERVER_URL/$GITHUB_WORKFLOW_REF")
[[ -z $PROFILE ]] || built+=("--profile=$PROFILE")

# Provenance and SBOM are there before the signature: whoever finds the signature finds all three.
boxbuild attest "${how[@]}" "${built[@]}" -- "$REFERENCE"
boxbuild sign "${how[@]}" -- "$REFERENCE"
