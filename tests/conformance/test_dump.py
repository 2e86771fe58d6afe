# SPDX-License-Identifier: Apache-2.0
"""chipdock.conformance.evidence.dump: every type can be read back."""

import ml_dtypes
import numpy as np
import pytest

from chipdock.conformance.evidence.dump import _Writer


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (np.float32([[1.5, -2.0]]), [[1.5, -2.0]]),
        (np.array([1.0, -1.0], ml_dtypes.bfloat16), [0x3F80, 0xBF80]),
        (np.array([1.0], ml_dtypes.float8_e5m2), [0x3C]),
        (np.array([7], ml_dtypes.int4), [7]),
        (np.array(2.0, ml_dtypes.bfloat16), 0x4000),
        (np.array(["a", "bc"], object), ["a", "bc"]),
        (np.array([True]), [True]),
        (np.array([1 + 2j], np.complex64), [1 + 2j]),
        (np.zeros((0, 3), ml_dtypes.float8_e4m3fn), []),
    ],
)
def test_a_tensor_is_read_back(tmp_path, value, kept):
    writer = _Writer(tmp_path)
    writer.array(writer.begin("com.x::Op"), "in 0", value)
    (file,) = tmp_path.iterdir()
    assert file.name == f"000_com_x_Op.in_0.{value.dtype.name}.npy"
    assert np.load(file, allow_pickle=False).tolist() == kept


def test_an_absent_input_leaves_no_file(tmp_path):
    writer = _Writer(tmp_path)
    writer.array(writer.begin("Clip"), "in1", None)
    assert list(tmp_path.iterdir()) == []
