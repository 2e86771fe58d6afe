# SPDX-License-Identifier: Apache-2.0
"""Derivatives of products of matrices: MatMul, Gemm, Einsum."""

from chipdock._gradient.step import Parts, Rules, Step
from chipdock._gradient.values import Value

__all__ = ["RULES"]


def _turned(s: Step, x: Value, rank: int) -> Value:
    return s.b("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


def _matmul(s: Step) -> Parts:
    a, b = s.x, s.required(1)
    rank_a, rank_b = s.rank(a), s.rank(b)
    assert a.dims is not None
    assert b.dims is not None
    if rank_b == 2 and rank_a > 2:  # one weight for many rows
        rows, down = (s.b("Flatten", v, axis=rank_a - 1) for v in (a, s.dy))
        dw = s.b("MatMul", _turned(s, rows, 2), down)
        return [s.b("MatMul", s.dy, _turned(s, b, 2)), dw]
    left, right, dy = a, b, s.dy
    if rank_a == 1:
        left, dy = s.b("Unsqueeze", a, s.b.ints(0)), s.b("Unsqueeze", dy, s.b.ints(-1))
        if rank_b > 1:
            dy = s.b("Unsqueeze", s.dy, s.b.ints(-2))
    if rank_b == 1:
        right, dy = s.b("Unsqueeze", b, s.b.ints(1)), s.b("Unsqueeze", dy, s.b.ints(-1))
    da = s.b("MatMul", dy, _turned(s, right, max(rank_b, 2)))
    db = s.b("MatMul", _turned(s, left, max(rank_a, 2)), dy)
    if rank_a == 1:
        da = s.b("Squeeze", da, s.b.ints(-2))
    if rank_b == 1:
        db = s.b("Squeeze", db, s.b.ints(-1))
    batch = None
    if s.y.dims is not None:
        batch = s.y.dims[: len(s.y.dims) - (rank_a > 1) - (rank_b > 1)]
    return [
        s.b.sum_to(da, a, None if batch is None else batch + a.dims[-2:]),
        s.b.sum_to(db, b, None if batch is None else batch + b.dims[-2:]),
    ]


def _gemm(s: Step) -> Parts:
    a, b, c = s.x, s.required(1), s.input(2)
    turn_a, turn_b, alpha = (s.attribute(n) for n in ("transA", "transB", "alpha"))
    if turn_a:
        da = s.b("Gemm", b, s.dy, alpha=alpha, transA=turn_b, transB=1)
    else:
        da = s.b("Gemm", s.dy, b, alpha=alpha, transB=1 - turn_b)
    if turn_b:
        db = s.b("Gemm", s.dy, a, alpha=alpha, transA=1, transB=turn_a)
    else:
        db = s.b("Gemm", a, s.dy, alpha=alpha, transA=1 - turn_a)
    if c is None:
        return [da, db]
    beta = s.attribute("beta")
    return [da, db, s.b.sum_to(s.dy if beta == 1.0 else s.dy * beta, c, s.y.dims)]


def _einsum(s: Step) -> Parts:
    """Each factor's gradient is an Einsum of dy and the others; "..." leads or is not there."""
    equation = s.attribute("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    letters = [t.removeprefix("...") for t in terms]
    if not arrow:
        once = [i for i in sorted(set("".join(letters))) if "".join(letters).count(i) == 1]
        result = ("..." if "..." in left else "") + "".join(once)
    if any("." in t or len(set(t)) < len(t) for t in (*letters, result.removeprefix("..."))):
        raise s.refused(
            f"its equation is {equation!r}; one with '...' in front of terms alone and without "
            "an index twice in one term has one"
        )
    parts: list[Value | None] = []
    for at, term in enumerate(letters):
        x, reach = s.required(at), set(result).union(*(t for i, t in enumerate(terms) if i != at))
        factors = [s.dy, *(v for i, v in enumerate(s.inputs) if i != at)]
        texts = [result, *(t for i, t in enumerate(terms) if i != at)]
        for place, index in enumerate(term):
            if index not in reach:  # summed up on its own: every element has the same gradient
                extent = s.b("Gather", s.b.extents(x), s.b.ints(place - len(term)))
                factors.append(s.b("Expand", s.b.like(1.0, s.dy), extent))
                texts.append(index)
        wide = "..." in equation
        text = ",".join(texts) + ("->..." if wide else "->") + term
        part = s.b("Einsum", *factors, equation=text)
        parts.append(s.b.sum_to(part, x, None) if wide else part)
    return parts


RULES: Rules = {"Einsum": _einsum, "Gemm": _gemm, "MatMul": _matmul}
