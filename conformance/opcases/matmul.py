# SPDX-License-Identifier: Apache-2.0
"""Products of matrices: MatMul, Gemm, Einsum, Det."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.opcases.spec import FLOATS, Cases, In, pick, variant

__all__ = ["cases"]

_WIDE = ("i32", "i64", "u32", "u64")

# name: shape class, a, b, views, whether b is a constant
_PRODUCTS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], tuple[str, str], bool]] = {
    "square": ("nd", (16, 16), (16, 16), ("", ""), False),
    "odd": ("odd", (5, 7), (7, 3), ("", ""), False),
    "one": ("scalar", (1, 1), (1, 1), ("", ""), False),
    "dot": ("odd", (37,), (37,), ("", ""), False),
    "vector_left": ("odd", (19,), (19, 5), ("", ""), False),
    "vector_right": ("odd", (3, 19), (19,), ("", ""), False),
    "row": ("odd", (1, 129), (129, 31), ("", ""), False),
    "column": ("odd", (33, 1), (1, 17), ("", ""), False),
    "batch": ("nd", (3, 5, 7), (3, 7, 4), ("", ""), False),
    "heads": ("real", (2, 4, 9, 16), (2, 4, 16, 9), ("", ""), False),
    "batch_by_one": ("broadcast", (3, 5, 7), (7, 4), ("", ""), False),
    "one_by_batch": ("broadcast", (5, 7), (2, 7, 4), ("", ""), False),
    "broadcast": ("broadcast", (2, 1, 5, 7), (3, 7, 4), ("", ""), False),
    "no_rows": ("empty", (0, 7), (7, 3), ("", ""), False),
    "no_terms": ("empty", (4, 0), (0, 3), ("", ""), False),
    "no_batch": ("empty", (0, 3, 4), (0, 4, 2), ("", ""), False),
    "k4096": ("large_k", (3, 4096), (4096, 5), ("", ""), False),
    "k16411": ("large_k", (2, 16411), (16411, 3), ("", ""), False),
    "tall": ("large", (301, 33), (33, 17), ("", ""), False),
    "blocks": ("large", (129, 257), (257, 131), ("", ""), False),
    "packed": ("packed", (9, 64), (64, 48), ("", ""), True),
    "packed_row": ("packed", (1, 128), (128, 96), ("", ""), True),
    "packed_batch": ("packed", (2, 5, 24), (24, 40), ("", ""), True),
    "step_left": ("strided", (6, 9), (9, 4), ("step", ""), False),
    "back_right": ("strided", (6, 9), (9, 4), ("", "back"), False),
    "inner": ("strided", (6, 9), (9, 4), ("inner", "inner"), False),
}  # fmt: skip


def cases() -> Cases:
    """Yield the cases."""
    for dtype in FLOATS:
        names = tuple(_PRODUCTS)
        for name in names if dtype == "f32" else pick(names, dtype, count=14):
            yield _product(dtype, name)
    for dtype in _WIDE:
        for name in pick(("odd", "dot", "batch", "broadcast", "packed", "step_left", "row"),
                         dtype, count=3):  # fmt: skip
            yield _product(dtype, name)
    for dtype in FLOATS:
        yield _product(dtype, "k4096", name="exact_sums", fill="exact")
        for fill in ("holes", "wide", "denormal"):
            yield _product(dtype, "odd", name=fill, fill=fill)
    yield _product("f32", "odd", name="v7", opset=7)
    yield _product("f32", "broadcast", name="v9", opset=9)
    yield from _gemm()
    yield from _einsum()
    for dtype in ("f32", "f64", "f16"):
        for name, shape in (("n3", (3, 3)), ("batch", (2, 4, 4)), ("one", (1, 1))):
            yield variant("Det", dtype, name, [In(dtype, shape)], shape_class="nd", tolerance="R",
                          factor=2.0)  # fmt: skip


def _product(
    dtype: str, shape: str, *, name: str = "", fill: str = "normal", **extra: Any
) -> Any:  # fmt: skip
    shape_class, a, b, views, packed = _PRODUCTS[shape]
    if dtype in _WIDE:
        fill = "ints:0:9" if dtype[0] == "u" else "ints:-9:10"
    if shape_class == "large_k":
        extra.setdefault("budget_ms", 60)
    pair = [In(dtype, a, fill, views[0]), In(dtype, b, fill, views[1], packed)]
    return variant("MatMul", dtype, name or shape, pair,
                   shape_class="special" if fill in {"holes", "wide", "denormal"} else shape_class,
                   tolerance="E" if dtype in _WIDE else "R", **extra)  # fmt: skip


def _gemm() -> Cases:
    biases: dict[str, tuple[int, ...] | None] = {
        "none": None, "row": (5,), "column": (6, 1), "full": (6, 5), "scalar": (), "one": (1, 1),
    }  # fmt: skip
    for dtype in (*FLOATS, *_WIDE):
        for bias, shape in biases.items():
            for turns in ("nn", "tn", "nt", "tt"):
                if dtype != "f32" and (bias, turns) not in pick(
                    [(b, t) for b in biases for t in ("nn", "tn", "nt", "tt")], dtype,
                    count=8 if dtype in FLOATS else 3,
                ):  # fmt: skip
                    continue
                yield _one_gemm(dtype, f"{turns}_{bias}", turns, (6, 11, 5), shape)
    for name, sizes in (
        ("k4096", (2, 4096, 3)),
        ("row", (1, 64, 33)),
        ("blocks", (65, 129, 67)),
        ("no_rows", (0, 5, 3)),
        ("no_terms", (3, 0, 4)),
        ("one", (1, 1, 1)),
    ):
        for dtype in ("f32", *pick(("f64", "f16", "bf16"), name)):
            yield _one_gemm(dtype, name, "nt", sizes, (sizes[2],))
    for name, alpha, beta in (("scaled", 0.5, 2.0), ("minus", -1.0, 0.25), ("no_bias", 1.5, 0.0)):
        for dtype in FLOATS:
            yield _one_gemm(dtype, name, "nn", (7, 9, 4), (4,), alpha=alpha, beta=beta)
    for turns in ("nn", "nt"):
        for dtype in FLOATS:
            yield _one_gemm(dtype, f"packed_{turns}", turns, (7, 40, 24), (24,), packed=True)
    for view in ("step", "back", "inner"):
        yield _one_gemm("f32", view, "tn", (6, 11, 5), (5,), view=view)
    yield _one_gemm("f32", "v7", "nn", (6, 11, 5), (5,), opset=7)
    yield _one_gemm("f32", "v9", "tt", (6, 11, 5), (6, 5), opset=9)


def _one_gemm(
    dtype: str, name: str, turns: str, sizes: tuple[int, int, int], bias: tuple[int, ...] | None,
    *, alpha: float = 1.0, beta: float = 1.0, packed: bool = False, view: str = "", **extra: Any,
) -> Any:  # fmt: skip
    m, k, n = sizes
    fill = "normal" if dtype in FLOATS else "ints:0:9" if dtype[0] == "u" else "ints:-9:10"
    a = (k, m) if turns[0] == "t" else (m, k)
    b = (n, k) if turns[1] == "t" else (k, n)
    given = [In(dtype, a, fill, view), In(dtype, b, fill, "", packed)]
    if bias is not None:
        given.append(In(dtype, bias, fill, "", packed))
    attributes: dict[str, Any] = {"transA": int(turns[0] == "t"), "transB": int(turns[1] == "t")}
    attributes |= {"alpha": alpha, "beta": beta}
    shape_class = "packed" if packed else "strided" if view else "large_k" if k > 1000 else "nd"
    shape_class = "empty" if 0 in sizes else shape_class
    return variant("Gemm", dtype, name, given, attributes, shape_class=shape_class,
                   tolerance="R" if dtype in FLOATS else "E", **extra)  # fmt: skip


def _einsum() -> Cases:
    equations: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
        "product": ("ij,jk->ik", ((3, 4), (4, 5))),
        "batch": ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
        "heads": ("bhqd,bhkd->bhqk", ((2, 2, 3, 4), (2, 2, 5, 4))),
        "transpose": ("ij->ji", ((3, 4),)),
        "sum": ("ij->i", ((3, 4),)),
        "trace": ("ii", ((4, 4),)),
        "dot": ("i,i", ((7,), (7,))),
        "outer": ("i,j->ij", ((3,), (5,))),
        "dots": ("...ij,...jk->...ik", ((2, 3, 4), (2, 4, 2))),
        "three": ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))),
    }  # fmt: skip
    for name, (equation, shapes) in equations.items():
        for dtype in ("f32", *pick(("f64", "f16"), name)):
            yield variant("Einsum", dtype, name, [In(dtype, s) for s in shapes],
                          {"equation": equation}, shape_class="nd", tolerance="R",
                          factor=4.0)  # fmt: skip
