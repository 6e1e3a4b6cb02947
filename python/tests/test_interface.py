"""The public interface against the PyPI package aneforge 0.4.0, read with `inspect` in a process of its own."""

import inspect
import json
import os
import subprocess

import aneforge as af
import pytest

READ = """
import inspect, json, aneforge as af
def form(o):
    try: found = inspect.signature(o).parameters.values()
    except (TypeError, ValueError): return None
    return [(p.name, repr(p.default) if p.default is not p.empty else None, str(p.kind)) for p in found]
names = {n: None if inspect.isclass(getattr(af, n)) else form(getattr(af, n)) for n in af.__all__}
methods = {n: form(m) for n, m in vars(af.Tensor).items() if not n.startswith('_') and inspect.isfunction(m)}
print(json.dumps([names, methods]))
"""


@pytest.fixture(scope="module")
def upstream():
    python = os.environ.get("ANEFORGE_UPSTREAM_PYTHON")
    if not python or not os.path.exists(python):
        pytest.skip("ANEFORGE_UPSTREAM_PYTHON names no interpreter")
    environment = {"ANEFORGE_TARGET": "h13", "ANEFORGE_NO_AUTOBUILD": "1", "PATH": os.environ["PATH"]}
    answer = subprocess.run([python, "-c", READ], env=environment, capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return [(p.name, repr(p.default) if p.default is not p.empty else None, str(p.kind)) for p in found]


def agrees(theirs, ours):
    return ours[: len(theirs)] == theirs and all(kind == "KEYWORD_ONLY" for _, _, kind in ours[len(theirs) :])


def test_every_name_is_here_or_absent_with_a_reason(upstream):
    names = set(upstream[0])
    assert len(names) == 119
    assert names == {name for name in names if name in af.__all__} | set(af.ABSENT)
    assert not set(af.ABSENT) & set(af.__all__)
    for name in af.ABSENT:
        with pytest.raises(NotImplementedError, match=name):
            getattr(af, name)


def test_functions_and_methods_have_the_same_parameters(upstream):
    wrong = {}
    for name, form in upstream[0].items():
        if form is None or name in af.ABSENT:
            continue
        # A parameter that begins with an underscore is none of the interface.
        theirs = [(n, d, k) for n, d, k in map(tuple, form) if not n.startswith("_")]
        ours = parameters(getattr(af, name))
        if not agrees(theirs, ours):
            wrong[name] = (theirs, ours)
    for name, form in upstream[1].items():
        theirs, ours = list(map(tuple, form)), parameters(getattr(af.Tensor, name))
        if not agrees(theirs, ours):
            wrong[f"Tensor.{name}"] = (theirs, ours)
    assert wrong == {}


def test_summaries_are_those_of_the_operator_table():
    from aneforge import _core
    from aneforge._elementwise import Elementwise

    summaries = {record["summary"] for record in _core.operators()}
    named = [method for name, method in vars(Elementwise).items() if not name.startswith("_")]
    assert len(named) == 47
    assert [method.__name__ for method in named if method.__doc__ not in summaries] == []
