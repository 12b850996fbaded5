"""The stubs against what is there: the same names, the same parameters."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import grouse

FOLDER = Path(grouse.__file__).parent


def classes(file: str) -> dict[str, dict[str, ast.FunctionDef]]:
    tree = ast.parse((FOLDER / file).read_text())
    return {
        node.name: {part.name: part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))}
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


@pytest.mark.parametrize("name", ["Relation", "Connection", "Profile", "Batch", "Batches", "Rows"])
def test_classes(name):
    stub, class_ = classes("_native.pyi")[name], getattr(grouse, name)
    own = {method for method in vars(class_) if not method.startswith("_")}
    own -= set(grouse.errors.__all__)
    assert own - set(stub) == set(), "not in the stub"
    assert {method for method in stub if not hasattr(class_, method)} == set(), "not there"
    for method, node in stub.items():
        value = inspect.getattr_static(class_, method)
        if not inspect.isfunction(value):
            continue
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        more = [part for part in (arguments.vararg, arguments.kwarg) if part]
        parameters = {argument.arg for argument in [*named, *more]}
        assert parameters == set(inspect.signature(value).parameters), method


def test_the_module():
    tree = ast.parse((FOLDER / "__init__.pyi").read_text())
    there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    there |= {alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    of_others = {*grouse.errors.__all__, *grouse._connection.dbapi.__all__, *grouse._expression.__all__, *grouse._calls.__all__}
    assert set(grouse.__all__) - of_others - there == set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            assert callable(getattr(grouse, node.name)), node.name
            assert getattr(grouse, node.name).__doc__


def test_everything_says_what_it_does():
    for class_ in (grouse.Relation, grouse.Connection, grouse.Cursor):
        for name, value in vars(class_).items():
            if not name.startswith("_") and (callable(value) or isinstance(value, property)):
                assert getattr(class_, name).__doc__ or value.__doc__, f"{class_.__name__}.{name}"
