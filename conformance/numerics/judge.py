# SPDX-License-Identifier: Apache-2.0
"""Judges one output by its tolerance class. Every verdict carries its evidence.

E exact, U element-wise ULP, R sums by gamma(k), C collectives, Q requantized integers, M models.
Class D (random) is in stats.py. What was computed exactly comes in as `Expected`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import CheckError, fail
from chipdock.conformance.numerics.bounds import accumulate_unit, reduction_bound, rel_l2_floor
from chipdock.conformance.numerics.dtypes import bits, float_format, is_exact, short_name, wide
from chipdock.conformance.numerics.metrics import describe, rel_l2, worst_evidence
from chipdock.conformance.numerics.ulp import Limit, round_to, ulp_limit, ulp_size

__all__ = ["Expected", "Judge"]


@dataclass(frozen=True)
class Expected:
    """What an output should be.

    Attributes:
        value: The exact result: integers and bools in the output's type, floats with digits to
            spare.
        magnitude: Size of the intermediate terms, for class R and composites of U; None: |value|.
        terms: k, how many terms were added.
        flushed: The result when denormal inputs are zero; None where that makes no difference.
    """

    value: NDArray[Any]
    magnitude: NDArray[Any] | None = None
    terms: int = 1
    flushed: NDArray[Any] | None = None


@dataclass(frozen=True)
class Judge:
    """Compares outputs of one case.

    Attributes:
        tolerance: E, U, R, C, Q or M.
        op: ONNX operator, for the ULP limits.
        zero_sign: -0 and +0 differ.
        flushes: The plugin declares that denormals may be zero.
        features: What the plugin declares of its accumulators, see bounds.accumulate_unit.
        factor: c of class R.
        own_unit: Class R: the steps in between are rounded to the output's own type.
        steps: Class R: how many such steps there are beside the sums, each of which may fall below
            the normal numbers.
    """

    tolerance: str
    op: str = ""
    zero_sign: bool = False
    flushes: bool = False
    features: Iterable[str] = ()
    factor: float = 1.0
    own_unit: bool = False
    steps: int = 0

    def check(
        self, got: NDArray[Any], expected: Expected, name: str = "the output", *,
        host_error: float | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Compare one output.

        Args:
            got: What the device computed.
            expected: What it should be.
            name: For the texts.
            host_error: Class R: relative L2 error of the host's own plugin against the same
                reference; None where that is not known.

        Returns:
            Evidence: metric, value, limit, max_ulp, rel_l2, cosine.

        Raises:
            CheckError: It is not close enough; the evidence also has index, expected, got.
        """
        exact = expected.value
        if got.shape != exact.shape:
            fail(
                f"{name} has the shape {got.shape}, the operator's definition gives {exact.shape}",
                metric="shape", value=list(got.shape), limit=list(exact.shape),
            )  # fmt: skip
        kind = self.tolerance
        if kind == "Q" and not is_exact(got.dtype):
            # Scales are computed; fp8 and fp4 are what the last rounding left.
            kind = "U" if got.dtype.itemsize > 1 else "E"
        if is_exact(got.dtype) and kind != "Q":
            kind = "E"
        if kind == "U" and ulp_limit(self.op, short_name(got.dtype)) == Limit(0.0, 0.0):
            kind = "E"
        if kind == "E":
            return self._exact(got, expected, name)
        if kind == "Q":
            return self._steps(got, exact, name)
        if got.dtype.kind == "c":
            return self._complex(got, expected, name)
        if kind == "M":
            return self._model(got, exact, name)
        return self._bounded(kind, got, expected, name, host_error)

    def _unit(self, dtype: str) -> float:
        if self.own_unit:
            return float_format(dtype).unit
        return accumulate_unit(dtype, self.features)

    def _exact(self, got: NDArray[Any], expected: Expected, name: str) -> dict[str, Any]:
        values = [expected.value]
        if self.flushes and expected.flushed is not None:
            values.append(expected.flushed)
        wrong = np.ones(got.shape, bool)
        for value in values:
            wrong &= self._differs(got, value)
        evidence = {"metric": "bits", "value": int(np.count_nonzero(wrong)), "limit": 0}
        return self._verdict(wrong.astype(np.float64), got, expected.value, evidence, name)

    def _differs(self, got: NDArray[Any], exact: NDArray[Any]) -> NDArray[Any]:
        if got.dtype.kind in "OUST":
            return np.asarray(got.astype(object) != exact.astype(object), bool)
        want = exact if exact.dtype == got.dtype else round_to(exact, got.dtype)
        a, b = bits(got), bits(want)
        differs = a != b
        if is_exact(got.dtype):
            return np.asarray(differs)
        if got.dtype.kind == "c":
            both = np.isnan(got) & np.isnan(want)
            return np.asarray(differs.any(axis=-1) & (got != want) & ~both)
        with np.errstate(all="ignore"):
            high, low = wide(got), wide(want)
        same = np.isnan(high) & np.isnan(low)
        if not self.zero_sign:
            same |= (high == 0) & (low == 0)
        if self.flushes and got.dtype.itemsize > 1:
            form = float_format(short_name(got.dtype))
            same |= (high == 0) & (np.abs(low) < 2.0**form.least_exponent)
        return np.asarray(differs & ~same)

    def _steps(self, got: NDArray[Any], exact: NDArray[Any], name: str) -> dict[str, Any]:
        off = np.abs(wide(got).astype(np.float64) - wide(exact).astype(np.float64))
        changed = int(np.count_nonzero(off))
        evidence: dict[str, Any] = {
            "metric": "steps", "value": float(off.max(initial=0.0)), "limit": 1.0
        }  # fmt: skip
        if evidence["value"] <= 1:
            # 0.1 % of the elements, and one of a small tensor: a tie may fall to either side.
            most = -(-off.size // 1000)
            if changed <= most:
                return evidence | describe(got, exact)
            evidence = {"metric": "elements_off_by_one", "value": changed, "limit": most}
        return self._verdict(off, got, exact, evidence, name)

    def _bounded(
        self, kind: str, got: NDArray[Any], expected: Expected, name: str, host_error: float | None
    ) -> dict[str, Any]:
        dtype = short_name(got.dtype)
        high = np.longdouble if dtype == "f64" else np.float64
        have = wide(got).astype(high)
        ratios = [self._ratio(kind, have, expected.value.astype(high), expected, dtype)]
        if self.flushes and expected.flushed is not None:
            ratios.append(self._ratio(kind, have, expected.flushed.astype(high), expected, dtype))
        ratio = np.minimum.reduce(ratios)
        evidence: dict[str, Any] = {
            "metric": {"U": "ulp", "C": "ulp"}.get(kind, "bound_ratio"),
            "value": float(ratio.max(initial=0.0)),
            "limit": 1.0,
        }
        if kind in "UC":
            ulps = 2.0 if kind == "C" else ulp_limit(self.op, dtype).ulps
            evidence |= {"value": evidence["value"] * ulps, "limit": ulps}
        bad = np.where(ratio > 1.0, ratio, 0.0)
        shown = self._verdict(bad, got, expected.value.astype(high), evidence, name)
        if kind == "R" and host_error is not None:
            self._not_worse(got, expected, host_error, name, shown)
        return shown

    def _ratio(
        self, kind: str, have: NDArray[Any], exact: NDArray[Any], expected: Expected, dtype: str
    ) -> NDArray[Any]:
        """Return |error| / allowed error of each element."""
        form = float_format(dtype)
        size = expected.magnitude if expected.magnitude is not None else np.abs(exact)
        with np.errstate(all="ignore"):
            if kind == "R":
                unit = self._unit(dtype)
                if self.steps:  # the last of them makes the result itself
                    size = np.fmax(size, np.abs(exact))
                allowed = reduction_bound(
                    exact, size, expected.terms, dtype=dtype, unit=unit, factor=self.factor
                )
                if self.steps:  # as below
                    allowed = allowed + 256 * 2.0 ** (form.least_exponent - form.mantissa)
            else:
                limit = Limit(2.0, 0.0) if kind == "C" else ulp_limit(self.op, dtype)
                allowed = limit.ulps * ulp_size(exact, dtype) + limit.roundings * form.unit * size
                if limit.roundings:
                    # An intermediate below the normal range has an absolute error only, which the
                    # next factor multiplies.
                    allowed = allowed + 256 * 2.0 ** (form.least_exponent - form.mantissa)
            # A bound that is infinite because a term was would let anything pass.
            allowed = np.where(np.isfinite(allowed), allowed, 0.0)
            ratio = np.abs(have - exact) / allowed
            same = (have == exact) | (np.isnan(have) & np.isnan(exact))
            # Beyond the range of the type: infinity and the largest finite number are both right
            # where the allowed error reaches over the edge.
            near = np.isinf(have) & (np.abs(exact) + allowed >= form.largest)
            near |= (
                (np.abs(exact) > form.largest)
                & np.isfinite(exact)
                & (np.abs(have) >= form.largest - np.minimum(allowed, form.largest))
            )
            same |= near & (np.sign(have) == np.sign(exact))
            if self.flushes:
                same |= (have == 0) & (np.abs(exact) < 2.0**form.least_exponent)
        # A NaN here is a finite result against a NaN, or the reverse.
        return np.where(same, 0.0, np.where(np.isnan(ratio), np.inf, ratio))

    def _not_worse(
        self, got: NDArray[Any], expected: Expected, host_error: float, name: str,
        shown: dict[str, Any],
    ) -> None:  # fmt: skip
        dtype = short_name(got.dtype)
        unit = self._unit(dtype)
        times = 2.0 if dtype in {"f32", "f64"} else 3.0
        floor = rel_l2_floor(expected.terms, dtype=dtype, unit=unit, factor=self.factor)
        error, limit = rel_l2(got, expected.value), times * host_error + floor
        if error > limit:
            text = f"{name}: relative L2 error {error:.3g} is above {limit:.3g}, {times:g} times"
            fail(
                f"{text} the host's own error {host_error:.3g} and {floor:.3g} on top",
                **(shown | {"metric": "rel_l2", "value": error, "limit": limit}),
            )

    def _complex(self, got: NDArray[Any], expected: Expected, name: str) -> dict[str, Any]:
        parts = [
            self.check(
                getattr(got, part),
                Expected(
                    getattr(expected.value, part),
                    np.abs(expected.value) if expected.magnitude is None else expected.magnitude,
                    expected.terms,
                ),
                f"{name}, {part} part",
            )
            for part in ("real", "imag")
        ]
        return max(parts, key=lambda evidence: float(evidence["value"]))

    def _model(self, got: NDArray[Any], exact: NDArray[Any], name: str) -> dict[str, Any]:
        half = short_name(got.dtype) in {"f16", "bf16"}
        limit, least = (2e-2, 0.99) if half else (1e-4, 0.9999)
        shown = describe(got, exact)
        evidence = {"metric": "rel_l2", "value": shown["rel_l2"], "limit": limit}
        if shown["cosine"] < least:
            evidence = {"metric": "cosine", "value": shown["cosine"], "limit": least}
        elif np.isfinite(wide(got)).all() and shown["rel_l2"] <= limit:
            return evidence | shown
        off = np.abs(wide(got).astype(np.float64) - exact.astype(np.float64))
        return self._verdict(np.maximum(off, 1e-300), got, exact, evidence, name)

    def _verdict(
        self, bad: NDArray[Any], got: NDArray[Any], exact: NDArray[Any],
        evidence: dict[str, Any], name: str,
    ) -> dict[str, Any]:  # fmt: skip
        shown = evidence | describe(got, exact)
        if not (bad > 0).any():
            return shown
        worst = worst_evidence(bad, got, exact)
        text = (
            f"{name} at {tuple(worst['index'])} is {worst['got']}, the exact result is "
            f"{worst['expected']}: {evidence['metric']} {evidence['value']:.6g}, allowed "
            f"{evidence['limit']:.6g}; {worst['wrong']} of {worst['of']} elements are off"
        )
        raise CheckError(text, **(shown | worst))
