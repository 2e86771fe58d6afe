# SPDX-License-Identifier: Apache-2.0
"""Derivative of Resize: along every axis a product with the transpose of what it did there.

All its modes are linear and treat one axis after the other, so the matrix of an axis is what the
operator makes of a unit matrix.
"""

from onnx import TensorProto

from chipdock._gradient.step import Parts, Rules, Step
from chipdock._gradient.values import Value

__all__ = ["RULES"]


def _resize(s: Step) -> Parts:
    if s.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":
        raise s.refused("it crops by tf_crop_and_resize; other modes have a gradient")
    if s.attribute("keep_aspect_ratio_policy") not in {None, "stretch"}:
        raise s.refused("keep_aspect_ratio_policy has a gradient as 'stretch' alone")
    rank = s.rank(s.x)
    axes = [a % rank for a in s.attribute("axes") or range(rank)]
    gradient = s.dy
    for place, axis in enumerate(axes):
        if not _kept(s, place, axis):
            gradient = _along(s, gradient, place, axis, rank)
    return [gradient]


def _kept(s: Step, place: int, axis: int) -> bool:
    """True if an axis is known to stay as it is."""
    scales = s.input(2)
    if scales is not None and scales.array is not None and scales.array.size:
        return bool(scales.array[place] == 1.0)
    before, after = s.x.dims, s.y.dims
    if before is None or after is None or before[axis] is None:
        return False
    return before[axis] == after[axis]


def _along(s: Step, gradient: Value, place: int, axis: int, rank: int) -> Value:
    """Undo one axis: gradients times the matrix [extent of y, extent of x]."""
    b = s.b
    extent, at = b("Gather", b.extents(s.x), b.ints(axis)), b.ints(place)
    square = b("Concat", extent, extent, axis=0)
    unit = b("EyeLike", b("Expand", b.like(0.0, s.x), square))
    ways = {k: v for k, v in s.attributes().items() if k != "axes"}
    scales, sizes = s.input(2), s.input(3)
    if sizes is not None:
        wanted = b("Concat", extent, b("Gather", sizes, at), axis=0)
        matrix = b("Resize", unit, None, None, wanted, **ways)
    else:
        assert scales is not None
        one = b.constant([1.0], TensorProto.FLOAT)
        wanted = b("Concat", one, b("Gather", scales, at), axis=0)
        matrix = b("Resize", unit, None, wanted, **ways)
    back = b("Transpose", matrix, perm=[1, 0])
    if axis == rank - 1:
        return b("MatMul", gradient, back)
    perm = [a for a in range(rank) if a != axis] + [axis]
    turned = b("MatMul", b("Transpose", gradient, perm=perm), back)
    return b("Transpose", turned, perm=[perm.index(a) for a in range(rank)])


RULES: Rules = {"Resize": _resize}
