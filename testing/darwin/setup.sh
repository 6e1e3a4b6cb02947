#!/bin/bash
# Everything needed to check, link and run Rust for aarch64-apple-darwin on Debian, x86-64, from Debian's packages, the crate
# registry and PyPI alone: setup.sh DIR. Makes a private sysroot with the stock compiler (RUSTC_BOOTSTRAP is used for std alone), a
# stub SDK of symbol lists, and a Python environment with a CPU emulator; DIR/ready says that all of it is there.
# Exits with 3 where a piece can't be had here. Nothing of it is ever committed: the SDK's lists are Apple's.
set -euo pipefail
D=$(mkdir -p "$1" && cd "$1" && pwd); HERE=$(cd "$(dirname "$0")" && pwd)
V=$(rustc -vV | sed -n 's/^release: //p'); T=aarch64-apple-darwin
if [ ! -d "$D/src/library" ]; then
  # a private apt state: neither the system's sources nor its packages change
  A=$D/apt; mkdir -p "$A"/{etc/sources.list.d,etc/preferences.d,etc/apt.conf.d,state/lists/partial,cache/archives/partial}
  # the mirror this machine already uses
  M=$(grep -rhoE '^URIs: *[^ ]+/debian$' /etc/apt/sources.list.d/ | head -1 | sed 's/^URIs: *//')
  [ -n "$M" ] || { echo 'setup: no Debian mirror configured' >&2; exit 3; }
  printf 'Types: deb\nURIs: %s\nSuites: trixie-backports\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$M" > "$A/etc/sources.list.d/x.sources"
  printf 'Dir::Etc "%s/etc";\nDir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "%s/etc/sources.list.d";\nDir::State "%s/state";\nDir::State::status "/var/lib/dpkg/status";\nDir::Cache "%s/cache";\nAPT::Sandbox::User "root";\n' "$A" "$A" "$A" "$A" > "$A/apt.conf"
  export APT_CONFIG=$A/apt.conf
  apt-get -qq update
  PV=$(apt-cache madison rust-src | awk -v v="$V+" 'index($3, v) == 1 { print $3; exit }')
  [ -n "$PV" ] || { echo "setup: Debian has no rust-src $V" >&2; exit 3; }
  (cd "$A" && apt-get -qq download "rust-src=$PV")
  mkdir -p "$D/src"; dpkg-deb --fsys-tarfile "$A"/rust-src_*.deb | tar x -C "$D/src" --strip-components=4 "./usr/src/rustc-$V/library"
  unset APT_CONFIG; rm -rf "$A"
fi
if [ ! -d "$D/sdk" ]; then
  W=$(mktemp -d); python3 -m pip download -q --no-deps -d "$W" ziglang==0.17.1 || { echo 'setup: PyPI has no ziglang 0.17.1' >&2; exit 3; }
  python3 "$HERE/mk-sdk.py" "$D/sdk.tmp" "$W"/ziglang-*.whl; mv "$D/sdk.tmp" "$D/sdk"; rm -rf "$W"
  python3 -m venv "$D/venv"; "$D/venv/bin/pip" -q install unicorn==2.1.4
fi
export LIB=$D/src/library
SDKROOT=$D/sdk "$HERE/mk-sysroot.sh" build "$D/sysroot"
touch "$D/ready"
