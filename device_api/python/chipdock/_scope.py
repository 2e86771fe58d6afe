# SPDX-License-Identifier: Apache-2.0
"""Names of one graph while it is lowered: their numbers, types, shapes and constants."""

from dataclasses import dataclass, field

import numpy as np

from chipdock import _core
from chipdock._fusion import Constant
from chipdock._onnx_types import is_tensor, numpy_dtype

__all__ = ["Scope"]


@dataclass
class Scope:
    """One graph being lowered. Names not found here are captured from the outer scope."""

    graph: "_core.ModelGraph"
    outer: "Scope | None" = None
    numbers: dict[str, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)  # as schemas write them, by name
    shapes: dict[str, list[int] | None] = field(default_factory=dict)
    captures: list[tuple[int, int]] = field(default_factory=list)
    arrays: dict[str, Constant] = field(default_factory=dict)
    inferred: set[str] = field(
        default_factory=set
    )  # types that onnx's inference says, not the file

    def known(self, name: str) -> Constant | None:
        """The constant of a name, those of outer scopes included."""
        if name in self.arrays or self.outer is None:
            return self.arrays.get(name)
        return None if name in self.types else self.outer.known(name)

    def declare(self, name: str, *, captured: bool = False) -> int:
        """Give a name a number in this graph.

        Inputs of a graph are held to their extents, and a body's captured values are inputs of it;
        but what is known of them may be inferred, and inference errs. So those have a rank alone.
        """
        text = self.types.get(name)
        shape = self.shapes.get(name)
        if captured and shape is not None:
            shape = [-1] * len(shape)
        # numpy's object stands for all that no device can hold.
        numpy = None
        if text is not None:
            numpy = numpy_dtype(text, name) if is_tensor(text) else np.dtype(object)
        number = self.graph.add_value(name, numpy, shape)
        self.numbers[name] = number
        return number

    def find(self, name: str) -> int | None:
        if name in self.numbers:
            return self.numbers[name]
        if self.outer is None:
            return None
        outside = self.outer.find(name)
        if outside is None:
            return None
        self.types[name] = self.outer.types[name]
        self.shapes[name] = self.outer.shapes.get(name)
        number = self.declare(name, captured=True)
        self.captures.append((outside, number))
        return number
