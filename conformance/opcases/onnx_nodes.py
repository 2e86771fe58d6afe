# SPDX-License-Identifier: Apache-2.0
"""The node cases of the onnx package: which there are, and running one of them.

onnx_nodes.tsv names the cases of the pinned onnx, so that an upgrade shows as a difference and
collecting tests does not load onnx. Inputs come from the installed package. Results are judged by
the class of the operator against a reference of our own where there is one.

    python -m chipdock.conformance.opcases.onnx_nodes --write
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases.spec import CORE, Cases
from chipdock.conformance.target import HostLacks

__all__ = ["FILE", "Node", "cases", "describe", "found", "node_of", "read"]

FILE = Path(__file__).with_name("onnx_nodes.tsv")
_CASES = "onnx.backend.test.case.node"
_SLOW = frozenset({"averagepool", "lppool", "maxpool"})
_HOST = frozenset({"If", "Loop", "Scan", "Constant", "OptionalHasElement", "OptionalGetElement"})
_RANDOM = frozenset({"Bernoulli", "Multinomial", "RandomNormal", "RandomUniform",
                     "RandomNormalLike", "RandomUniformLike"})  # fmt: skip


class Node(NamedTuple):
    """One row of the file.

    Attributes:
        name: As onnx says it: "test_abs".
        module: Where onnx makes it: "abs".
        op: Operator with its domain, "ai.onnx.ml::Binarizer".
        dtype: Short name of its first floating input, else of its first input.
        tolerance: Class.
    """

    name: str
    module: str
    op: str
    dtype: str
    tolerance: str


@functools.cache
def read() -> tuple[Node, ...]:
    """Return the rows of the file."""
    lines = FILE.read_text("utf-8").splitlines()
    return tuple(Node(*line.split("\t")) for line in lines if line and not line.startswith("#"))


def cases() -> Cases:
    """Yield the cases."""
    for row in read():
        name = re.sub(r"[^a-z0-9_]", "_", row.name.removeprefix("test_").lower())
        yield (
            row.op.rpartition("::")[2],
            Variant(
                dtype=row.dtype,
                name=name,
                # Control flow and its like run on the host: no plugin lists a kernel for them.
                needs="" if row.op in _HOST else f"op:{row.op}:{row.dtype}",
                op=row.op,
                shape_class="onnx",
                tolerance=row.tolerance,
                mustpass=row.dtype in CORE and row.tolerance in "EUR" and "::" not in row.op,
                # Their inputs take seconds to make, once a worker.
                budget_ms=200 if row.module in _SLOW else 20,
                node=row.name,
                module=row.module,
            ),
        )


def node_of(name: str, module: str) -> Any:
    """Return a case of the onnx package: model and data sets.

    Raises:
        HostLacks: The installed onnx is not the pinned one and has no such case.
    """
    try:
        _import(module)
    except ModuleNotFoundError as error:
        raise HostLacks(f"the installed onnx has no cases of {module}: {error}") from error
    for case in importlib.import_module(_CASES)._NodeTestCases:
        if case.name == name:
            return case
    raise HostLacks(f"the installed onnx has no node case {name}; install the one chipdock pins")


@functools.cache
def _import(module: str) -> None:
    """Import one file of cases, which computes all of its inputs."""
    import numpy as np  # noqa: PLC0415

    state = np.random.get_state()  # noqa: NPY002  the cases draw from the global generator
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        importlib.import_module(f"{_CASES}.{module}")
    np.random.set_state(state)  # noqa: NPY002


def found() -> Iterator[Node]:
    """Describe all cases of the installed onnx that are of use to a device."""
    package = importlib.import_module(_CASES)
    folder = Path(str(package.__file__)).parent
    classes = _classes()
    for file in sorted(folder.glob("*.py")):
        if file.stem.startswith("_"):
            continue
        before = len(package._NodeTestCases)
        _import(file.stem)
        for case in package._NodeTestCases[before:]:
            row = describe(case, file.stem, classes)
            if row is not None:
                yield row


def describe(case: Any, module: str, classes: dict[str, str]) -> Node | None:
    """Return the row of a case; None for those that no device can see.

    Left out are texts, sequences and optionals, which stay on the host, and the cases that onnx
    makes from the bodies of functions: these run other operators, which have cases of their own.
    """
    from chipdock.conformance.numerics.dtypes import ONNX_TYPES  # noqa: PLC0415

    graph = case.model.graph
    kinds = [value.type.WhichOneof("value") for value in (*graph.input, *graph.output)]
    types = [value.type.tensor_type.elem_type for value in graph.input]
    shorts = {number: name for name, number in ONNX_TYPES.items()}
    outputs = [value.type.tensor_type.elem_type for value in graph.output]
    if "_expanded" in case.name or any(kind != "tensor_type" for kind in kinds):
        return None
    if any(number not in shorts for number in (*types, *outputs)):
        return None
    names = [shorts[number] for number in types] or [shorts[number] for number in outputs]
    dtype = next((name for name in names if name[0] == "f" or name == "bf16"), names[0])
    node = graph.node[0]
    op = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    plain = all(name[0] in "iu" or name == "bool" for name in (shorts[n] for n in outputs))
    tolerance = classes.get(op, "E" if plain else "R")
    random = op in _RANDOM or (op == "Dropout" and "training" in case.name)
    return Node(case.name, module, op, dtype, "D" if random else tolerance)


def _classes() -> dict[str, str]:
    """Class of each operator, as the families of operator cases have it."""
    import pkgutil  # noqa: PLC0415

    from chipdock.conformance import opcases  # noqa: PLC0415

    known: dict[str, str] = {}
    for info in pkgutil.iter_modules(opcases.__path__):
        module = importlib.import_module(f"{opcases.__name__}.{info.name}")
        if info.name not in {"onnx_nodes"} and "cases" in module.__all__:
            for _, variant in module.cases():
                if variant.tolerance == "D":
                    continue
                # Where an operator has cases of two classes the wider one serves all nodes.
                old = known.get(variant.op, "E")
                known[variant.op] = max(old, variant.tolerance, key="EQURD".index)
    return known


def _main(arguments: Sequence[str]) -> int:
    """Write or check the file."""
    import onnx as package  # noqa: PLC0415

    head = [f"# Node cases of onnx {package.__version__}: case, module, operator, dtype, class."]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package_rows = list(found())
    text = "\n".join(head + ["\t".join(row) for row in package_rows]) + "\n"
    if "--write" in arguments:
        FILE.write_text(text, "utf-8")
        return 0
    return int(FILE.read_text("utf-8") != text)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
