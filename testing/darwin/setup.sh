#!/bin/bash
# Everything needed to check, link and run Rust for aarch64-apple-darwin on Debian, x86-64, from Debian's packages, the crate
# registry and PyPI alone: setup.sh DIR. Makes a private sysroot with the stock compiler (RUSTC_BOOTSTRAP is used for std alone), a
# stub SDK of symbol lists, and a Python environment with a CPU emulator; DIR/ready says that all of it is there.
# Exits with 3 where a piece can't be had here. Nothing of it is ever committed: the SDK's lists are Apple's.
set -euo pipefail
D=$(mkdir -p "$1" && cd "$1" && pwd); HERE=$(cd "$(dirname "$0")" && pwd)
V=$(rustc -vV | sed -n 's/^release: //p'); T=aarch64-apple-darwin
W=$(mktemp -d "$D/work.XXXXXX"); trap 'rm -rf "$W"' EXIT
missing() {
  echo "setup: $*" >&2
  exit 3
}
for tool in apt-get apt-cache dpkg-deb python3; do
  command -v "$tool" > "$W/found" || missing "no $tool here"
done
# Each piece is made in a folder of its own and renamed when it is whole.
if [ ! -d "$D/src" ]; then
  # A private apt state: neither the system's sources nor its packages change.
  A=$W/apt; mkdir -p "$A"/{etc/sources.list.d,etc/preferences.d,etc/apt.conf.d,state/lists/partial,cache/archives/partial}
  # The mirror that this machine already uses.
  M=$(grep -rhoE '^URIs: *[^ ]+/debian$' /etc/apt/sources.list.d/ | head -1 | sed 's/^URIs: *//') || true
  printf 'Types: deb\nURIs: %s\nSuites: trixie-backports\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "${M:-http://deb.debian.org/debian}" > "$A/etc/sources.list.d/x.sources"
  printf 'Dir::Etc "%s/etc";\nDir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "%s/etc/sources.list.d";\nDir::State "%s/state";\nDir::State::status "/var/lib/dpkg/status";\nDir::Cache "%s/cache";\nAPT::Sandbox::User "root";\n' "$A" "$A" "$A" "$A" > "$A/apt.conf"
  export APT_CONFIG=$A/apt.conf
  apt-get -qq update || missing "Debian's package lists can't be had"
  PV=$(apt-cache madison rust-src | awk -v v="$V+" 'index($3, v) == 1 && !found { print $3; found = 1 }')
  [ -n "$PV" ] || missing "Debian has no rust-src $V"
  (cd "$A" && apt-get -qq download "rust-src=$PV") || missing "rust-src $PV can't be had"
  mkdir "$W/src"; dpkg-deb --fsys-tarfile "$A"/rust-src_*.deb | tar x -C "$W/src" --strip-components=4 "./usr/src/rustc-$V/library"
  unset APT_CONFIG; mv "$W/src" "$D/src"
fi
if [ ! -d "$D/sdk" ]; then
  python3 -m pip download -q --no-deps -d "$W" ziglang==0.17.1 || missing "ziglang 0.17.1 can't be had from PyPI"
  python3 "$HERE/mk-sdk.py" "$W/sdk" "$W"/ziglang-*.whl; mv "$W/sdk" "$D/sdk"
fi
if [ ! -e "$D/venv/ready" ]; then
  rm -rf "$D/venv"; python3 -m venv "$D/venv" || missing "no Python environment can be made"
  "$D/venv/bin/pip" -q install unicorn==2.1.4 || missing "unicorn 2.1.4 can't be had from PyPI"
  touch "$D/venv/ready"
fi
RUSTC_BOOTSTRAP=1 cargo fetch --quiet --locked --manifest-path "$D/src/library/sysroot/Cargo.toml" --target "$T" || missing "crates of std can't be had"
LIB=$D/src/library SDKROOT=$D/sdk "$HERE/mk-sysroot.sh" build "$D/sysroot"
touch "$D/ready"
