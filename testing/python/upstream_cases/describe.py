"""How a graph is described as data, for both sides to build it.

A case is a JSON-able description: named inputs, nodes in order, one output. A node names its operator,
its inputs (of the graph or earlier nodes), its constant arrays and its attributes. Arrays are described
by shape, seed and range: `numpy.random.default_rng(seed).uniform(low, high, shape)`, rounded to fp16 or
to a type of their own.
"""

from __future__ import annotations

from itertools import count
from typing import Any

Json = dict[str, Any]

SEEDS = count(1)


def array(shape: list[int], low: float = -2.0, high: float = 2.0, **more: Any) -> Json:
    """A described array with a seed of its own.

    `step` rounds to its multiples, `kept` zeroes all but that part, `dtype` is a numpy name.
    """
    return {"shape": shape, "seed": next(SEEDS), "low": low, "high": high} | more


def node(op: str, inputs: list[str], constants: Json | None = None, **attributes: Any) -> Json:
    """One operator; its result is called by its place: n0, n1, ..."""
    return {"op": op, "inputs": inputs, "constants": constants or {}, "attributes": attributes}


def case(name: str, inputs: Json, *nodes: Json, **compress: Any) -> Json:
    """A graph whose output is its last node; `compress` are options of the package's compiler."""
    for index, entry in enumerate(nodes):
        entry["id"] = f"n{index}"
    return {
        "name": name,
        "inputs": inputs,
        "nodes": list(nodes),
        "output": nodes[-1]["id"],
        "compress": compress,
    }
