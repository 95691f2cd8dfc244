#!/bin/sh
# Makes the untouched Debian trixie tree of the test machines.
#   base.sh TARGET PACKAGES-FILE
# TARGET is an empty directory; the mirror is the first one the host itself uses
# that is not the security archive, or SLUICE_E2E_MIRROR.
set -eu

target=$1
packages=$(grep -v '^#' "$2" | paste -sd, -)

# shellcheck disable=SC2016 # $(SITE) is apt's own placeholder
mirror=${SLUICE_E2E_MIRROR:-$(apt-get indextargets --format '$(SITE)' | grep -v security | head -n 1)}
if [ -z "$mirror" ]; then
    echo "base.sh: no Debian mirror in this host's apt sources; set SLUICE_E2E_MIRROR" >&2
    exit 1
fi

# What the host says about proxies and dates holds for its mirror too.
options=$(mktemp)
trap 'rm -f "$options"' EXIT
apt-config dump Acquire::http::Proxy Acquire::https::Proxy \
    Acquire::Check-Date Acquire::Check-Valid-Until > "$options"

mmdebstrap --quiet --mode=root --variant=minbase \
    --include="$packages" \
    --aptopt="$options" \
    --aptopt='Acquire::Retries "5"' \
    --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-include=/usr/share/locale/de/*' \
    --skip=cleanup/reproducible \
    trixie "$target" "$mirror"
