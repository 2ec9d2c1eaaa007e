#!/usr/bin/env bash
# Installs a release of boxbuild for the following steps of a job, if it has the right checksum.
# RELEASE is its directory, as a path or an https URL. VERSION and CHECKSUM are those of its archive.
set -euo pipefail

fail() {
    echo "::error title=boxbuild::$1"
    exit 1
}

# The error does not repeat the value: it could end the command.
[[ $VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail 'the version is not one such as 0.1.0'
[[ $CHECKSUM =~ ^[0-9a-f]{64}$ ]] || fail 'the checksum is not a sha256: 64 hexadecimal digits'

archive=boxbuild-$VERSION-x86_64-linux.tar.gz
root=$RUNNER_TEMP/boxbuild-$VERSION
download=$(mktemp -d "$RUNNER_TEMP/download.XXXXXX")
trap 'rm -r "$download"' EXIT

case $RELEASE in
https://*) curl --fail --silent --show-error --location --proto =https --retry 3 \
    --output "$download/$archive" "${RELEASE%/}/$archive" ;;
*) cp -- "$RELEASE/$archive" "$download/$archive" ;;
esac
echo "$CHECKSUM  $download/$archive" | sha256sum --check --quiet --strict - ||
    fail "$archive has another checksum"

mkdir -p "$root"
tar -xzf "$download/$archive" -C "$root" --strip-components=1 --no-same-owner
echo "$root/bin" >>"$GITHUB_PATH"
