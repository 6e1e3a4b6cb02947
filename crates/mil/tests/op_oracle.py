"""Compares the operator table with coremltools and PyTorch.

Reads what tests/op_oracle.rs writes: every operator with its ports and every case with arguments and our results. Checks port
names, which of them are optional, defaults, result shapes against coremltools' registry, and result values against
coremltools' constant evaluation, or against PyTorch in float64 where coremltools has none. Prints one line per difference and a
summary; exits 1 if there is a difference.
"""

import json
import logging
import sys
import types as python_types

logging.disable(logging.CRITICAL)

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types
from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry
from op_twins import torch_value

# Operators whose form of iOS 18 the table describes, although an older one with other ports exists.
NEWER_FORM = {"crop_resize", "constexpr_lut_to_dense", "constexpr_sparse_to_dense"}
# Operators of the engine that coremltools has no word for.
ENGINE_ONLY = {"acosh", "asinh"}
# Words of coremltools that name nothing a program of the engine has.
NOT_OF_THE_ENGINE = {
    "_const_symbolic": "a constant of unknown extent while a converter runs",
    "classify": "turns scores into words, behind the program",
    "conv_quantized": "replaced by conv with a constexpr weight, and by nothing from iOS 16 on",
}
# Where the table differs from coremltools on purpose: operator -> ports.
EXTRA_PORTS = {"atanh": {"epsilon"}}
INTEGER = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32, "uint32": np.uint32}
PACKED = {
    "int4": types.int4, "uint1": types.uint1, "uint2": types.uint2, "uint3": types.uint3, "uint4": types.uint4, "uint6": types.uint6,
}


class Report:
    """Collects differences."""

    def __init__(self):
        self.lines, self.by, self.unchecked = [], {"coremltools": 0, "PyTorch": 0}, []

    def differ(self, *parts):
        self.lines.append(" ".join(str(part) for part in parts))


def newest(name):
    """The newest registered form of an operator, and the op-set of the oldest."""
    forms = SSAOpRegistry.core_ops.get(name)
    if not forms:
        return None, None
    names = [version.name.lower() for version in forms]
    return list(forms.values())[-1], names[0].replace("ios13", "ios15")


def check_ports(op, report):
    form, oldest = newest(op["name"])
    if op["name"] in ENGINE_ONLY:
        if form is not None:
            report.differ(op["name"], "is in coremltools' registry by now")
        return
    if form is None:
        report.differ(op["name"], "is not in coremltools' registry")
        return
    if op["opset"] != oldest and op["name"] not in NEWER_FORM:
        report.differ(op["name"], "op-set", op["opset"], "but coremltools has it from", oldest)
    spec = dict(form.input_spec.input_types)
    extra = EXTRA_PORTS.get(op["name"], set())
    ours = {port["name"]: port for port in op["ports"] if port["name"] not in extra}
    if set(ours) != set(spec):
        report.differ(op["name"], "ports", sorted(ours), "coremltools", sorted(spec))
        return
    for name, port in ours.items():
        if port["required"] == bool(spec[name].optional):
            report.differ(op["name"], name, "is required" if port["required"] else "is optional", "unlike in coremltools")
    tensor = python_types.SimpleNamespace(rank=4, shape=(1, 2, 3, 4), dtype=types.fp32, val=True)
    fake = form.__new__(form)
    for name in spec:
        setattr(fake, name, tensor)
    defaults = dict(form.default_inputs(fake).items())
    for name, port in ours.items():
        if port["default"] is None:
            continue
        theirs = defaults.get(name)
        same = theirs == port["default"] if isinstance(theirs, str) else np.float32(theirs) == np.float32(port["default"])
        if not same:
            report.differ(op["name"], name, "default", port["default"], "coremltools", theirs)


def value(argument):
    """An argument as coremltools takes it: floats as fp32, so that both sides see the same numbers."""
    if "text" in argument:
        return argument["text"]
    data, shape, dtype = argument["data"], argument["shape"], argument["dtype"]
    if dtype == "bool":
        array = np.array(data, dtype=bool)
    elif dtype in INTEGER:
        array = np.array(data, dtype=INTEGER[dtype])
    elif dtype in PACKED:
        array = np.array(data).astype(types.nptype_from_builtin(PACKED[dtype]))
    else:
        array = np.array(data, dtype=np.float32)
    array = array.reshape(shape)
    if dtype == "bool" and not shape:
        return bool(array)
    return array if shape else array[()]


def arguments(case):
    found = {}
    for argument in case["arguments"]:
        taken = value(argument)
        if argument["variadic"]:
            found.setdefault(argument["port"], []).append(taken)
        else:
            found[argument["port"]] = taken
    return found


def evaluate(name, given):
    """Shapes and values that coremltools gives; values are None where it does not compute them."""
    results = []

    @mb.program(input_specs=[mb.TensorSpec((1,))], opset_version=ct.target.iOS18)
    def program(x):
        made = getattr(mb, name)(**given)
        for index, var in enumerate(made if isinstance(made, (list, tuple)) else [made]):
            computed = var.val
            if computed is None and hasattr(var.op, "materialized_val_inference"):
                computed = var.op.materialized_val_inference()
                computed = computed[index] if isinstance(computed, tuple) else computed
            results.append((tuple(var.shape), computed))
        return mb.identity(x=x)

    return results


def compare(op, case, report):
    label = op["name"] + "." + case["name"]
    given = arguments(case)
    if op["name"] == "constexpr_cast":  # the one operator that takes halves alone
        given["source_val"] = given["source_val"].astype(np.float16)
    ours = [np.array(result["data"], dtype=np.float64).reshape(result["shape"]) for result in case["results"]]
    try:
        theirs = None if op["name"] in ENGINE_ONLY else evaluate(op["name"], given)
    except Exception as error:  # the registry's own bugs must not hide the other cases
        theirs = None
        if label not in KNOWN_FAILURES:
            report.differ(label, "coremltools refuses:", type(error).__name__, str(error).splitlines()[0] if str(error) else "")
    computed = torch_value(op["name"], given)
    if theirs is not None:
        shapes = [tuple(int(extent) for extent in shape) for shape, _ in theirs]
        if shapes != [result.shape for result in ours]:
            report.differ(label, "shapes", [result.shape for result in ours], "coremltools", shapes)
            return
        if all(values is not None for _, values in theirs) and label not in KNOWN_VALUES:
            report.by["coremltools"] += 1
            for mine, (_, values) in zip(ours, theirs):
                close(report, label, "coremltools", mine, np.asarray(values, dtype=np.float64), 2e-6)
    if computed is not None:
        report.by["PyTorch"] += 1
        close(report, label, "torch", ours[0], computed.numpy(), 1e-12)
    elif theirs is not None and any(values is None for _, values in theirs):
        report.unchecked.append(label)


def close(report, label, who, mine, other, tolerance):
    if mine.shape != other.shape:
        report.differ(label, "shape", mine.shape, who, other.shape)
        return
    # 0/0 has no agreed value: a lone element over no variance, a row whose every key is masked.
    known = ~np.isnan(mine)
    mine, other = mine[known], other[known]
    scale = max(1.0, float(np.abs(other).max(initial=0.0)))
    worst = float(np.abs(mine - other).max(initial=0.0))
    if not worst <= tolerance * scale:
        report.differ(label, "differs from", who, "by", worst, "ours", mine.ravel()[:6], who, other.ravel()[:6])


# Cases that coremltools 9.0 cannot take although its documentation allows them.
KNOWN_FAILURES = {
    "squeeze.every_axis_of_one",  # it cannot fold a constant of rank 0
    "cumsum.from_the_end_without_itself",  # its evaluation of exclusive sums raises a TypeError
}
# Cases that coremltools 9.0 evaluates differently from its documentation.
KNOWN_VALUES = {
    "cast.integers_stop_at_their_ends",  # numpy wraps where the behaviour of C is undefined
    "scatter_along_axis.largest_stays",  # its evaluation ignores mode
    "concat.interleaved",  # its evaluation ignores interleave, its documentation does not
}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        table, listed = (parts := json.load(file))["operators"], parts["listed"]
    report = Report()
    ours = {op["name"] for op in table} | set(listed)
    for name in sorted(set(SSAOpRegistry.core_ops) - ours - set(NOT_OF_THE_ENGINE)):
        report.differ(name, "is in coremltools' registry and nowhere in the table")
    for name in sorted(set(NOT_OF_THE_ENGINE) & ours | set(NOT_OF_THE_ENGINE) - set(SSAOpRegistry.core_ops)):
        report.differ(name, "need not be an exception")
    for op in table:
        check_ports(op, report)
        for case in op["cases"]:
            compare(op, case, report)
    for line in report.lines:
        print("difference:", line)
    checked = ", ".join(f"{count} cases by {who}" for who, count in report.by.items())
    print(f"{len(table)} operators; values of {checked}; only shapes of {', '.join(sorted(set(report.unchecked))) or 'none'}")
    sys.exit(1 if report.lines else 0)


main()
