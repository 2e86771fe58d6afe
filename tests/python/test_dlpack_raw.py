# SPDX-License-Identifier: Apache-2.0
"""DLPack below the Python protocol: capsules by hand, their fields, and their deleters."""

import ctypes
import gc
import threading

import numpy as np
import pytest

import chipdock


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_MANAGED_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [
    ("tensor", _Tensor),
    ("context", ctypes.c_void_p),
    ("deleter", _MANAGED_DELETER),
]


class _Versioned(ctypes.Structure):
    pass


_VERSIONED_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Versioned))
_Versioned._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("context", ctypes.c_void_p),
    ("deleter", _VERSIONED_DELETER),
    ("flags", ctypes.c_uint64),
    ("tensor", _Tensor),
]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_OLD, _OLD_USED = b"dltensor", b"used_dltensor"
_NEW, _NEW_USED = b"dltensor_versioned", b"used_dltensor_versioned"


@pytest.mark.threads
@pytest.mark.parametrize("kind", ["old", "versioned"])
def test_deleter_runs_on_any_thread_without_the_gil(kind):
    """Consumers let go from threads of their own: the deleter may not need Python at all."""
    device = chipdock.device("cpu:0")
    gc.collect()
    before = device.memory_stats()["used_bytes"]
    version, name, used, struct = (
        (None, _OLD, _OLD_USED, _Managed)
        if kind == "old"
        else ((1, 1), _NEW, _NEW_USED, _Versioned)
    )
    capsule = chipdock.array(np.zeros(1 << 16, np.uint8)).__dlpack__(max_version=version)
    managed = ctypes.cast(_pointer(capsule, name), ctypes.POINTER(struct))
    _rename(capsule, used)
    del capsule
    assert device.memory_stats()["used_bytes"] > before
    # A plain CFUNCTYPE call releases the GIL around the callee.
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
        ctypes.cast(managed.contents.deleter, ctypes.c_void_p).value
    )
    thread = threading.Thread(target=free, args=(ctypes.cast(managed, ctypes.c_void_p).value,))
    thread.start()
    thread.join()
    assert device.memory_stats()["used_bytes"] == before


class HandMade:
    """A producer of one int32 vector with any field changed, that counts its deleter's calls."""

    def __init__(self, count=4, strides=None, **fields):
        self.values = (ctypes.c_int32 * 16)(*range(16))
        self.shape = (ctypes.c_int64 * 1)(count)
        self.strides = (ctypes.c_int64 * 1)(strides) if strides is not None else None
        self.deleted = 0
        self.deleter = _VERSIONED_DELETER(self._delete)
        self.managed = _Versioned(1, 0, None, self.deleter, fields.pop("flags", 0))
        self.managed.major = fields.pop("major", 1)
        tensor = self.managed.tensor
        tensor.data = ctypes.addressof(self.values)
        tensor.device_type, tensor.ndim, tensor.code, tensor.bits, tensor.lanes = 1, 1, 0, 32, 1
        tensor.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        if self.strides is not None:
            tensor.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        for key, field in fields.items():
            setattr(tensor, key, field)

    def _delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **_):
        return _new(ctypes.addressof(self.managed), _NEW, None)


def test_null_strides_mean_row_major_and_byte_offset_counts():
    producer = HandMade(byte_offset=8)
    array = chipdock.from_dlpack(producer)
    np.testing.assert_array_equal(array.numpy(), [2, 3, 4, 5])
    del array
    gc.collect()
    assert producer.deleted == 1


def test_a_zero_stride_repeats_an_element():
    producer = HandMade(strides=0, byte_offset=12)
    array = chipdock.from_dlpack(producer)
    np.testing.assert_array_equal(array.numpy(), [3, 3, 3, 3])
    np.testing.assert_array_equal(chipdock.run_op("Neg", array).numpy(), [-3] * 4)
    del array
    gc.collect()
    assert producer.deleted == 1


def test_a_null_deleter_is_fine():
    producer = HandMade()
    producer.managed.deleter = _VERSIONED_DELETER()
    np.testing.assert_array_equal(chipdock.from_dlpack(producer).numpy(), [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"device_type": 2}, "device type 2"),
        ({"lanes": 4}, "lanes"),
        ({"major": 2}, "2.0"),
        ({"code": 3, "bits": 64}, "dtype|opaque"),
        ({"code": 99}, "dtype"),
        ({"bits": 24}, "dtype"),
        ({"code": 6, "bits": 1}, "code 6 and 1 bits is not supported"),
        ({"code": 6, "bits": 6}, "code 6 and 6 bits is not supported"),
        ({"code": 15, "bits": 8}, "code 15 and 8 bits is not supported"),
        ({"code": 0, "bits": 4, "flags": 4}, "padded|sub-byte"),
    ],
    ids=str,
)
def test_what_cannot_be_taken_is_refused_and_given_back(fields, match):
    producer = HandMade(**fields)
    with pytest.raises((BufferError, chipdock.ChipdockError), match=match):
        chipdock.from_dlpack(producer)
    gc.collect()
    assert producer.deleted == 1
