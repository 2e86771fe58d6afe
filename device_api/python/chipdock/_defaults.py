# SPDX-License-Identifier: Apache-2.0
"""Inputs that a run may leave out: a graph input that is an initializer as well has it as default.

Source: ONNX IR, "Graphs"; from IR version 4 on, as before that every initializer was an input. A
default is a constant, so that weights which happen to be listed as inputs are packed and folded as
any others. A run that gives another value is done by a plan of its own, in which that input is one.
"""

import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import TypeAlias

import onnx

from chipdock import _core
from chipdock._forks import lock_of
from chipdock._lower import lower
from chipdock._onnx_file import ModelFile
from chipdock._onnx_types import ValueInfo, tensor_type, type_proto, type_text, value_info

__all__ = ["Variants", "default_inputs"]

_FIRST_IR_WITH_DEFAULTS = 4
_KEPT_PLANS = 8

_Made: TypeAlias = "tuple[_core.Plan, tuple[ValueInfo, ...]]"


def default_inputs(model: onnx.ModelProto) -> tuple[ValueInfo, ...]:
    """The inputs with a default, in the model's order."""
    if model.ir_version < _FIRST_IR_WITH_DEFAULTS:
        return ()
    graph = model.graph
    stored = {t.name: t.data_type for t in graph.initializer}
    stored |= {t.values.name: t.values.data_type for t in graph.sparse_initializer}
    return tuple(
        value_info(value, type_text(value.type) or tensor_type(stored[value.name]))
        for value in graph.input
        if value.name in stored
    )


def _without(model: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto:
    """A copy in which these inputs have no default."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    graph = out.graph
    kinds = {v.name: v.type for v in default_inputs(model)}
    for value in graph.input:
        if value.name in names and not type_text(value.type):
            value.type.CopyFrom(type_proto(kinds[value.name], None))
    for i in reversed(range(len(graph.initializer))):
        if graph.initializer[i].name in names:
            del graph.initializer[i]
    for i in reversed(range(len(graph.sparse_initializer))):
        if graph.sparse_initializer[i].values.name in names:
            del graph.sparse_initializer[i]
    return out


class _Variant:
    """One plan, made by the thread that needs it first; others that need it wait for that."""

    def __init__(self) -> None:
        self._lock = lock_of(self)
        self._made: _Made | None = None

    def made(self, make: Callable[[], _Made]) -> _Made:
        with self._lock:
            if self._made is None:
                self._made = make()
            return self._made


class Variants:
    """Plans of one model, by the defaults that a run replaces; made when they are first needed."""

    def __init__(
        self,
        file: ModelFile,
        device: "_core.Device",
        compiled: "Callable[[_core.ModelGraph], _core.Plan]",
    ) -> None:
        """Keep what makes plans.

        Args:
            file: The model; it stays open as long as this lives.
            device: Where it runs.
            compiled: Makes a plan of a graph.
        """
        self.defaults = default_inputs(file.proto)
        self._file = file
        self._device = device
        self._compiled = compiled
        self._variants: OrderedDict[frozenset[str], _Variant] = OrderedDict()
        self._lock = lock_of(self)
        weakref.finalize(self, file.close)

    def find(self, given: Collection[str]) -> _Made:
        """The plan for a run with these inputs, and its inputs in order.

        Raises:
            ChipdockError: The model cannot be loaded when these inputs are no constants.
        """
        names = frozenset(v.name for v in self.defaults if v.name in given)
        with self._lock:
            variant = self._variants.pop(names, None) or _Variant()
            self._variants[names] = variant
            if len(self._variants) > _KEPT_PLANS:
                self._variants.popitem(last=False)
        return variant.made(lambda: self._make(names))

    def _make(self, names: Collection[str]) -> _Made:
        file = self._file.with_proto(_without(self._file.proto, names))
        graph, inputs, _ = lower(file, self._device)
        return self._compiled(graph), tuple(inputs)
