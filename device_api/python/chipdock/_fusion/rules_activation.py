# SPDX-License-Identifier: Apache-2.0
"""Rules for activations that exporters write out, and for those that end a convolution or product.

The fused operators are described in docs/fused-operators.md.
"""

from collections.abc import Callable, Iterator

import numpy as np

from chipdock._fusion.rewrite import Given, Match, Rule
from chipdock._fusion.rules_matmul import plain_gemm

__all__ = ["AFTER", "WHOLE"]

_ROOT_HALF = 0.7071067811865476
_NEAR = 1e-3

_Where = Callable[[Match], Given | None]


def _hard(match: Match) -> Given | None:
    """A HardSigmoid with the constants that HardSwish has."""
    node = match.node("hard")
    alpha, beta = node.attribute("alpha"), node.attribute("beta")
    fits = abs(float(alpha) * 6 - 1) < _NEAR and beta == 0.5  # type: ignore[arg-type]
    return {} if fits else None


def _limits(match: Match) -> Given | None:
    """Lower and upper limit of a Clip: attributes before opset 11, since then constants."""
    node = match.node("act")
    bounds = [node.attribute("min"), node.attribute("max")]
    for at, name in enumerate(node.proto.input[1:3]):
        if name:
            bounds[at] = match.graph.number(name)
            if bounds[at] is None:
                return None
    low, high = bounds
    return {"low": -np.inf if low is None else low, "high": np.inf if high is None else high}


def _named(*names: str) -> _Where:
    """Attributes of the activation by these names."""
    return lambda match: {name: match.node("act").attribute(name) for name in names}


def _gelu(match: Match) -> Given | None:
    tanh = match.node("act").attribute("approximate") == "tanh"
    return {"name": "GeluTanh" if tanh else "Gelu"}


# Activations by the operator that ONNX has for them.
WHOLE = (
    *(
        Rule(pattern, "Gelu(x)")
        for half in (f"Mul(x, {_ROOT_HALF})", "Div(x, 1.4142135623730951)")
        for pattern in (
            f"Mul(Mul(x, Add(Erf({half}), 1.0)), 0.5)",
            f"Mul(Mul(x, 0.5), Add(Erf({half}), 1.0))",
            f"Mul(x, Mul(Add(Erf({half}), 1.0), 0.5))",
        )
    ),
    *(
        Rule(pattern, "Gelu(x, approximate='tanh')")
        for inner in (
            "Mul(Add(x, Mul(Mul(Mul(x, x), x), 0.044715)), 0.7978845608028654)",
            "Mul(Add(x, Mul(Pow(x, 3.0), 0.044715)), 0.7978845608028654)",
        )
        for pattern in (
            f"Mul(Mul(x, 0.5), Add(Tanh({inner}), 1.0))",
            f"Mul(Mul(x, Add(Tanh({inner}), 1.0)), 0.5)",
            f"Mul(x, Mul(Add(Tanh({inner}), 1.0), 0.5))",
        )
    ),
    Rule("Mul(x, Sigmoid(x))", "Swish(x)"),
    Rule("Mul(x, (hard := HardSigmoid(x)))", "HardSwish(x)", _hard),
    *(
        Rule(pattern, "HardSwish(x)")
        for clip in ("Clip(Add(x, 3.0), 0.0, 6.0)",)
        for pattern in (
            f"Div(Mul(x, {clip}), 6.0)",
            f"Mul(Mul(x, {clip}), {1 / 6})",
            f"Mul(x, Div({clip}, 6.0))",
            f"Mul(x, Mul({clip}, {1 / 6}))",
        )
    ),
    Rule("Mul(x, Tanh(Softplus(x)))", "Mish(x)"),
)


def _after(inner: str, fused: str, fits: _Where = lambda _: {}) -> Iterator[Rule]:
    """Rules that give `fused`, written as the start of a call, the activation behind `inner`."""

    def rule(pattern: str, attributes: str, where: _Where) -> Rule:
        def both(match: Match) -> Given | None:
            before = match.binding.named.get("fused")
            if before is not None and before.attribute("activation"):
                return None
            first = fits(match)
            second = where(match) if first is not None else None
            return None if first is None or second is None else {**first, **second}

        return Rule(f"(act := {pattern})", f"{fused}, {attributes})", both)

    for op in ("Relu", "Sigmoid", "Tanh", "HardSwish"):
        yield rule(f"{op}({inner})", f"activation='{op}'", _named())
    for op in ("LeakyRelu", "Swish"):
        yield rule(f"{op}({inner})", f"activation='{op}', alpha=alpha", _named("alpha"))
    hard = "activation='HardSigmoid', alpha=alpha, beta=beta"
    yield rule(f"HardSigmoid({inner})", hard, _named("alpha", "beta"))
    yield rule(f"Gelu({inner})", "activation=name", _gelu)
    clip = "activation='Clip', alpha=low, beta=high"
    yield rule(f"Clip({inner}, *limits)", clip, _limits)


AFTER = (
    *_after("(conv := Conv(x, w, *b))", "chipdock.FusedConv(x, w, *b, **conv"),
    *_after("(fused := chipdock.FusedConv(*all))", "chipdock.FusedConv(*all, **fused"),
    *_after("MatMul(a, b)", "chipdock.FusedMatMul(a, b"),
    *_after("(fused := chipdock.FusedMatMul(*all))", "chipdock.FusedMatMul(*all, **fused"),
    *_after(
        "(gemm := Gemm(a, b, c))", "chipdock.FusedMatMul(a, b, c, trans_b=transposed", plain_gemm
    ),
)
