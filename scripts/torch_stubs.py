"""Lets the CUDA build of PyTorch load on a machine without CUDA.

The Linux wheel links libraries (cuBLAS, cuDNN, NCCL, ...) that a CPU run never calls, yet the loader
wants each file and each data or bind-now symbol. This script compiles an empty-handed library for
every one that is missing, whose functions all answer `cudaErrorNoDevice`. Run it with the environment's
own Python after `pip install --no-deps torch`. It does nothing where no library is missing.

The ELF rules that it relies on: a reference with a symbol version must be met by a library that defines
that version; one without may be met by any loaded library.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

NO_DEVICE = 100  # cudaErrorNoDevice, and a non-zero status in every other CUDA library
CUDA_LIBRARY = re.compile(r"lib(cu|nccl|nv)[A-Za-z0-9_]*\.so")
# The rest of the unversioned symbols belong to Python and to the C++ runtime.
CUDA_SYMBOL = re.compile(r"(__)?(cu|nccl|pnccl|nv)[A-Za-z0-9_]+$")


@dataclass
class Links:
    """What a set of shared objects asks of others."""

    libraries: set[str] = field(default_factory=set)
    # version name -> library it is asked from
    version_owner: dict[str, str] = field(default_factory=dict)
    # (symbol, version or "")
    wanted: set[tuple[str, str]] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)


def readelf(option: str, path: Path) -> list[str]:
    """Lines of `readelf` for one file."""
    command = ["readelf", "-W", option, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def read_links(objects: list[Path]) -> Links:
    """Collects needed libraries, version owners and strong symbols of all `objects`."""
    links = Links()
    for path in objects:
        for line in readelf("--dynamic", path):
            if found := re.search(r"\(NEEDED\).*\[(.+)\]", line):
                links.libraries.add(found[1])
        owner = ""
        for line in readelf("--version-info", path):
            if found := re.search(r"File: (\S+)", line):
                owner = found[1]
            elif owner and (found := re.search(r"Name: (\S+)\s+Flags: .*Version: \d+", line)):
                links.version_owner[found[1]] = owner
        for line in readelf("--dyn-syms", path):
            columns = line.split()
            if len(columns) < 8 or not columns[0].rstrip(":").isdigit():
                continue
            binding, section = columns[4], columns[6]
            symbol, _, version = columns[7].partition("@")
            if section != "UND":
                links.defined.add(symbol)
            elif binding == "GLOBAL":
                links.wanted.add((symbol, version.lstrip("@")))
    return links


def source_of(symbols: list[str]) -> str:
    """C text that defines `symbols`; the names of errors are text, the rest are failing calls."""
    lines = []
    for symbol in symbols:
        if symbol.endswith(("ErrorString", "ErrorName")):
            lines.append(f'const char *{symbol}(void) {{ return "no CUDA device"; }}')
        else:
            lines.append(f"int {symbol}(void) {{ return {NO_DEVICE}; }}")
    return "\n".join(lines) + "\n"


def version_script(by_version: dict[str, list[str]]) -> str:
    """A linker script that gives each symbol its version."""
    nodes = []
    for version, symbols in sorted(by_version.items()):
        body = "".join(f" {symbol};" for symbol in symbols)
        nodes.append(f"{version} {{ global:{body} }};" if symbols else f"{version} {{ }};")
    return "\n".join(nodes) + "\n"


def build(folder: Path, library: str, by_version: dict[str, list[str]]) -> None:
    """Compiles one stub; the key "" of `by_version` holds its unversioned symbols."""
    symbols = sorted({symbol for group in by_version.values() for symbol in group})
    versions = {version: group for version, group in by_version.items() if version}
    command = ["cc", "-shared", "-fPIC", "-O1", "-w", "-x", "c", "-", f"-Wl,-soname,{library}"]
    script = folder / f"{library}.map"
    if versions:
        script.write_text(version_script(versions))
        command.append(f"-Wl,--version-script={script}")
    command += ["-o", str(folder / library)]
    subprocess.run(command, input=source_of(symbols), text=True, check=True)
    script.unlink(missing_ok=True)


def main() -> int:
    """Builds a stub for every CUDA library that torch's own libraries miss."""
    if not sys.platform.startswith("linux"):
        return 0
    folder = Path(sysconfig.get_path("purelib")) / "torch" / "lib"
    objects = [path for path in folder.iterdir() if ".so" in path.name and path.is_file()]
    if not objects:
        sys.exit(f"torch_stubs: no shared libraries in {folder}: is torch installed?")
    links = read_links(objects)
    present = {path.name for path in objects}
    missing = sorted(name for name in links.libraries - present if CUDA_LIBRARY.match(name))
    if not missing:
        return 0
    groups: dict[str, dict[str, list[str]]] = {name: defaultdict(list) for name in missing}
    for version, owner in links.version_owner.items():
        if owner in groups:
            groups[owner][version] = []
    for symbol, version in sorted(links.wanted):
        if version:
            owner = links.version_owner.get(version, "")
            if owner in groups:
                groups[owner][version].append(symbol)
    # A library whose versions are scripted would hide unversioned symbols. Not every library is
    # loaded with every object, so each plain one carries them all.
    plain = sorted(
        symbol
        for symbol, version in links.wanted
        if not version and symbol not in links.defined and CUDA_SYMBOL.match(symbol)
    )
    carriers = [name for name in missing if not groups[name]]
    if plain and not carriers:
        sys.exit("torch_stubs: every missing library is versioned; no place for plain symbols")
    for name in carriers:
        groups[name][""] = plain
    for name in missing:
        build(folder, name, groups[name])
    print(f"torch: made {len(missing)} stub libraries", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
