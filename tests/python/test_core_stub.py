# SPDX-License-Identifier: Apache-2.0
"""_core.pyi says what the extension module has: the same names, parameters and docstrings."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import chipdock
from chipdock import _core

STUB = Path(chipdock.__file__).parent / "_core.pyi"
TREE = ast.parse(STUB.read_text(encoding="utf-8"))
CLASSES = {n.name: n for n in TREE.body if isinstance(n, ast.ClassDef)}
FUNCTIONS = {n.name: n for n in TREE.body if isinstance(n, ast.FunctionDef)}
PUBLIC = ("Array", "Device", "Event", "Graph", "Plugin", "Stream")
# What every pybind11 class has.
MACHINERY = {"__module__", "__doc__", "__new__", "_pybind11_conduit_v1_"}


def members(node):
    return {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}


def has(node, decorator):
    return any(isinstance(d, ast.Name) and d.id == decorator for d in node.decorator_list)


def named_parameters(node):
    given = node.args
    return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def runtime_parameters(function):
    """The names in pybind11's signature, the first line of the docstring."""
    line = function.__doc__.splitlines()[0]
    inside = re.fullmatch(r"\w+\((.*)\) -> .*", line)
    assert inside, line
    # Types hold commas and colons in brackets, defaults none of either.
    flat = inside.group(1)
    while re.search(r"\[[^\[\]]*\]", flat):
        flat = re.sub(r"\[[^\[\]]*\]", "", flat)
    names = [part.split(":")[0].split("=")[0].strip() for part in flat.split(",")]
    return [name for name in names if name and name != "*"]


def documented(function):
    """A runtime docstring without the signature."""
    return inspect.cleandoc(re.sub(r"\A\w+\(.*\n+", "", function.__doc__))


def every_method():
    for name, node in CLASSES.items():
        for method, stub in members(node).items():
            yield pytest.param(getattr(_core, name), method, stub, id=f"{name}.{method}")


def test_module_has_the_names_of_the_stub():
    constants = {n.target.id for n in TREE.body if isinstance(n, ast.AnnAssign)}
    public = {*CLASSES, *FUNCTIONS, *(c for c in constants if not c.startswith("_"))}
    assert {name for name in vars(_core) if not name.startswith("_")} == public


@pytest.mark.parametrize("name", CLASSES)
def test_class_has_the_members_of_the_stub(name):
    there = {n for n in vars(getattr(_core, name)) if n not in MACHINERY}
    there -= {"__init__"} - members(CLASSES[name]).keys()
    assert there == set(members(CLASSES[name]))
    assert getattr(_core, name).__doc__ == ast.get_docstring(CLASSES[name])


@pytest.mark.parametrize(("cls", "method", "stub"), list(every_method()))
def test_method_is_that_of_the_stub(cls, method, stub):
    entry = vars(cls)[method]
    assert isinstance(entry, property) == has(stub, "property")
    assert isinstance(entry, staticmethod) == has(stub, "staticmethod")
    text = ast.get_docstring(stub)
    if isinstance(entry, property):
        assert documented(entry) == text
        return
    function = getattr(cls, method)
    assert runtime_parameters(function) == named_parameters(stub)
    if text is not None:
        assert documented(function) == text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_that_of_the_stub(name):
    function = getattr(_core, name)
    assert documented(function) == ast.get_docstring(FUNCTIONS[name])
    if name != "run_op":  # written against Python's C interface, with a signature for inspect
        assert runtime_parameters(function) == named_parameters(FUNCTIONS[name])


def test_signature_of_run_op_is_that_of_the_stub():
    signature = inspect.signature(_core.run_op)
    stub = FUNCTIONS["run_op"].args
    wanted = ["op", stub.vararg.arg, *(a.arg for a in stub.kwonlyargs), stub.kwarg.arg]
    assert list(signature.parameters) == wanted


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_has_a_docstring(name):
    cls = getattr(chipdock, name)
    assert cls.__doc__
    for member, value in vars(cls).items():
        if not member.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{member}"


@pytest.mark.parametrize("name", chipdock.__all__)
def test_every_exported_name_has_a_docstring(name):
    value = getattr(chipdock, name)
    assert inspect.getdoc(value)
    if inspect.isclass(value) and value.__module__.startswith("chipdock"):
        for member, entry in vars(value).items():
            if not member.startswith("_") and (callable(entry) or isinstance(entry, property)):
                assert inspect.getdoc(entry), f"{name}.{member}"


def test_package_says_that_it_is_typed():
    assert (STUB.parent / "py.typed").is_file()
