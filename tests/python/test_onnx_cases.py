# SPDX-License-Identifier: Apache-2.0
"""Every backend test case of the onnx package, grouped by operator; see onnx_cases/known.toml."""

from collections import Counter

import pytest
from onnx import defs
from onnx_cases import cases
from onnx_cases.judge import failure

# Collecting the cases themselves would cost seconds in every run of pytest; schemas are at hand.
GROUPS = sorted({s.name for s in defs.get_all_schemas()}) + [k for k in cases.KINDS if k != "node"]


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_cases_of(group):
    expected = cases.known()
    wrong = []
    for case in cases.all_cases():
        if case.operator != group:
            continue
        text = failure(case)
        known = expected.get((case.kind, case.name))
        if known is None and text is not None:
            wrong.append(f"{case.name}: {text}")
        elif known is not None and not known.holds(text):
            wrong.append(f"{case.name}: {text or 'passes'}, known.toml says: {known.reason}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_every_case_is_in_a_group_and_every_known_one_is_a_case():
    found = {(c.kind, c.name) for c in cases.all_cases()}
    assert {c.operator for c in cases.all_cases()} <= set(GROUPS)
    assert not set(cases.known()) - found
    assert Counter(c.kind for c in cases.all_cases())["node"] > 1800


def test_a_wrong_output_is_seen():
    case = next(c for c in cases.all_cases() if c.name == "abs")

    class Doubled:
        source = case.source
        kind = case.kind

        def model(self):
            return case.model()

        def data(self, model):
            for inputs, outputs in case.data(model):
                yield inputs, [2 * outputs[0]]

    assert failure(case) is None
    assert "output 0" in failure(Doubled())
