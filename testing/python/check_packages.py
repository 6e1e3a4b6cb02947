"""Checks ML Program packages with coremltools, Apple's own code, without Core ML itself.

    check_packages.py FOLDER        answers {"name": {"operations": 3, "types": 5, "blobs": 2,
                                             "opset": "CoreML6", "problems": [...]}, ...}

Every `*.mlpackage` in FOLDER is loaded by coremltools' reader of programs, which builds each operation
again: its operator must be in the op-set, its arguments must be what the operator takes, and the types
that coremltools infers must be exactly the ones the package declares. Beside that every blob must be
readable by Apple's storage reader, at an aligned offset and with as many elements as its type says, no
message may hold fields that Apple's do not have, names must be unique, and the description of inputs,
states and outputs must be that of the functions.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

logging.disable(logging.CRITICAL)
with contextlib.redirect_stderr(io.StringIO()):
    from coremltools import proto
    from coremltools.converters.mil.frontend.milproto import load as milproto
    from coremltools.converters.mil.frontend.milproto.helper import proto_to_types
    from coremltools.converters.mil.mil import types
    from coremltools.libmilstoragepython import _BlobStorageReader
    from google.protobuf.unknown_fields import UnknownFieldSet

DATA = Path("Data/com.apple.CoreML")
VERSIONS = {6: "CoreML5", 7: "CoreML6", 8: "CoreML7", 9: "CoreML8", 10: "CoreML9"}
METHODS = {"fp32": "float"}
ARRAYS = {65568: "fp32", 65552: "fp16", 131104: "int32"}


class Checked:
    """One package and what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self.operations = self.types = self.blobs = 0
        self.model = proto.Model_pb2.Model()

    def check(self) -> None:
        """Runs all checks."""
        self.container()
        for name, function in self.program.functions.items():
            if function.opset != VERSIONS.get(self.model.specificationVersion):
                self.problems.append(f"{name} is for {function.opset}")
            self.names(name, function)
        self.weights()
        if not self.problems:
            self.build()
            self.description()

    @property
    def program(self) -> Any:
        """The program message."""
        return self.model.mlProgram

    def container(self) -> None:
        """Manifest and messages."""
        manifest = json.loads((self.path / "Manifest.json").read_text())
        assert manifest["fileFormatVersion"] == "1.0.0"
        for item in manifest["itemInfoEntries"].values():
            if not (self.path / "Data" / item["path"]).exists():
                self.problems.append(f"the manifest names {item['path']}, which is not there")
        root = manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]
        self.model.ParseFromString((self.path / "Data" / root["path"]).read_bytes())
        self.problems += unknown_fields(self.model, "model")

    def names(self, name: str, function: Any) -> None:
        """Every name is defined once."""
        seen = {port.name for port in function.inputs}
        for operation in function.block_specializations[function.opset].operations:
            self.operations += operation.type != "const"
            for port in operation.outputs:
                if port.name in seen:
                    self.problems.append(f"{name}: {port.name} is defined twice")
                seen.add(port.name)

    def weights(self) -> None:
        """Every blob, through Apple's reader."""
        path = self.path / DATA / "weights/weight.bin"
        reader = _BlobStorageReader(str(path))
        offsets = set()
        for where, value in values(self.program):
            if value.WhichOneof("value") != "blobFileValue":
                continue
            blob = value.blobFileValue
            offsets.add(blob.offset)
            self.blobs += 1
            if blob.fileName != "@model_path/weights/weight.bin" or blob.offset % 64:
                self.problems.append(f"{where}: blob {blob.fileName} at {blob.offset}")
            ty = proto_to_types(value.type)
            dtype = types.builtin_to_string(ty.get_primitive())
            data = getattr(reader, f"read_{METHODS.get(dtype, dtype)}_data")(blob.offset)
            if np.asarray(data).size != np.prod(ty.get_shape()):
                self.problems.append(f"{where}: {np.asarray(data).size} elements")
        count, version = struct.unpack("<II", path.read_bytes()[:8])
        if version != 2 or count != len(offsets):
            self.problems.append(
                f"{count} blobs in the file, {len(offsets)} used, version {version}"
            )

    def build(self) -> None:
        """Builds the program again and compares types."""
        compatible = types.is_compatible_type

        def same(inferred: Any, declared: Any) -> bool:
            self.types += 1
            if shown(inferred) != shown(declared):
                self.problems.append(f"inferred {shown(inferred)}, declared {shown(declared)}")
            return compatible(inferred, declared)

        types.is_compatible_type = same
        try:
            weights = str(self.path / DATA / "weights")
            milproto.load(self.model, self.model.specificationVersion, weights)
        except Exception as error:
            self.problems.append(f"{type(error).__name__}: {error}")
        finally:
            types.is_compatible_type = compatible

    def description(self) -> None:
        """What the package says about inputs and outputs."""
        described = {one.name: one for one in self.model.description.functions}
        for name, function in self.program.functions.items():
            told = described.get(name, self.model.description)
            block = function.block_specializations[function.opset]
            if [one.name for one in told.output] != list(block.outputs):
                self.problems.append(f"{name}: outputs {[one.name for one in told.output]}")
            ports = [(port.name, proto_to_types(port.type)) for port in function.inputs]
            inputs = [(one.name, one.type.multiArrayType) for one in told.input]
            states = [(one.name, one.type.stateType.arrayType) for one in told.state]
            for arrays, kept in ((inputs, False), (states, True)):
                declared = [(n, shown(ty)) for n, ty in ports if types.is_state(ty) == kept]
                if declared != [(n, (ARRAYS[a.dataType], list(a.shape))) for n, a in arrays]:
                    self.problems.append(f"{name}: {'states' if kept else 'inputs'} {declared}")


def values(program: Any) -> Iterator[tuple[str, Any]]:
    """Every value of a program that has data."""
    for function in program.functions.values():
        for operation in function.block_specializations[function.opset].operations:
            for key, value in operation.attributes.items():
                yield f"{operation.type}.{key}", value
            for key, argument in operation.inputs.items():
                for binding in argument.arguments:
                    if binding.WhichOneof("binding") == "value":
                        yield f"{operation.type}.{key}", binding.value


def shown(ty: Any) -> Any:
    """A type as element type and shape."""
    if types.is_state(ty):
        return shown(ty.wrapped_type())
    if types.is_tensor(ty):
        return types.builtin_to_string(ty.get_primitive()), [int(n) for n in ty.get_shape()]
    return types.builtin_to_string(ty), []


def unknown_fields(message: Any, where: str) -> list[str]:
    """Fields that Apple's messages do not have, in `message` and below."""
    numbers = [field.field_number for field in UnknownFieldSet(message)]
    found = [f"{where} has unknown fields {numbers}"] if numbers else []
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            parts = list(value.values())
        else:
            parts = [value] if hasattr(value, "ListFields") else list(value)
        for part in parts:
            if hasattr(part, "ListFields"):
                found += unknown_fields(part, f"{where}.{field.name}")
    return found


def main() -> int:
    """Checks a folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    answers = {}
    for path in sorted(folder.glob("*.mlpackage")):
        checked = Checked(path)
        try:
            checked.check()
        except Exception as error:
            checked.problems.append(f"{type(error).__name__}: {error}")
        answers[path.stem] = {
            "operations": checked.operations,
            "types": checked.types,
            "blobs": checked.blobs,
            "opset": VERSIONS.get(checked.model.specificationVersion),
            "problems": checked.problems,
        }
    json.dump(answers, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
