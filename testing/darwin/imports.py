#!/usr/bin/env python3
"""imports.py FILE...: hold that Mach-O files for arm64 load nothing but libSystem.

Reads the load commands and nothing else. Prints what each file loads; exits with 1 where that is more."""
import struct
import sys

# LC_LOAD_DYLIB, LC_LOAD_WEAK_DYLIB, LC_REEXPORT_DYLIB, LC_LOAD_UPWARD_DYLIB, LC_LAZY_LOAD_DYLIB
LOADS = {0xC, 0x18, 0x1F, 0x23, 0x20}
ALLOWED = {"/usr/lib/libSystem.B.dylib"}


def libraries(path):
    with open(path, "rb") as file:
        data = file.read()
    magic, processor = struct.unpack_from("<II", data)
    if (magic, processor) != (0xFEEDFACF, 0x0100000C):
        raise SystemExit(f"{path}: no thin Mach-O for arm64")
    (count,) = struct.unpack_from("<I", data, 16)
    offset, found = 32, []
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, offset)
        if command & 0x7FFFFFFF in LOADS:
            (name,) = struct.unpack_from("<I", data, offset + 8)
            found.append(data[offset + name : offset + size].split(b"\0")[0].decode())
        offset += size
    return found


def main():
    failed = False
    for path in sys.argv[1:]:
        found = libraries(path)
        print(f"{path}: {', '.join(found)}")
        failed |= not set(found) <= ALLOWED or not found
    sys.exit(failed)


if __name__ == "__main__":
    main()
