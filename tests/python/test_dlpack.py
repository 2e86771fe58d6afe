# SPDX-License-Identifier: Apache-2.0
"""DLPack in and out, with numpy and torch: old and versioned capsules, lifetimes, and refusals."""

import ctypes
import gc
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest
from api_support import PLAIN_DTYPES, open_fake

import chipdock

TORCH = [
    *(np.dtype(dtype).name for dtype in PLAIN_DTYPES),
    "bfloat16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]


class OldConsumer:
    """What a library from before DLPack 1.0 asks for: no arguments."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class NoLongerThere:
    """A producer whose tensor is gone."""

    def __dlpack__(self, **_):
        raise BufferError("the tensor was given away")

    def __dlpack_device__(self):
        return 1, 0


_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]


@pytest.mark.parametrize("dtype", PLAIN_DTYPES, ids=lambda d: np.dtype(d).name)
def test_out_to_numpy_shares(dtype):
    array = chipdock.array((np.arange(12) % 2).astype(dtype).reshape(3, 4))
    out = np.from_dlpack(array)
    assert out.dtype == np.dtype(dtype)
    assert np.shares_memory(out, array.numpy())
    np.testing.assert_array_equal(out, array.numpy())


@pytest.mark.parametrize("dtype", PLAIN_DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("wrap", [lambda a: a, OldConsumer], ids=["versioned", "old"])
def test_in_from_numpy_shares(dtype, wrap):
    class Producer:
        def __init__(self, source):
            self.source = source

        def __dlpack__(self, **more):
            return self.source.__dlpack__(**more)

    source = (np.arange(12) % 2).astype(dtype).reshape(3, 4)
    array = chipdock.from_dlpack(wrap(Producer(source)) if wrap is OldConsumer else source)
    assert array.dtype == np.dtype(dtype)
    assert array.shape == (3, 4)
    assert np.shares_memory(array.numpy(), source)


@pytest.mark.parametrize("name", TORCH)
def test_torch_both_ways_in_every_dtype(torch, name):
    dtype = getattr(torch, name)
    source = (torch.arange(12) % 2).to(dtype).reshape(3, 4)
    array = chipdock.from_dlpack(source)
    assert array.shape == (3, 4)
    assert str(array.dtype) == name
    assert array.numpy().ctypes.data == source.data_ptr()
    back = torch.from_dlpack(array)
    assert back.dtype == dtype
    assert back.data_ptr() == source.data_ptr()
    own = torch.from_dlpack(chipdock.array(array.numpy()))
    assert torch.equal(own.view(torch.uint8), source.view(torch.uint8))


def test_torch_views_keep_their_strides(torch):
    source = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    array = chipdock.from_dlpack(source.t()[1:5:2])
    np.testing.assert_array_equal(array.numpy(), source.numpy().T[1:5:2])
    assert array.strides == source.t()[1:5:2].stride()
    back = torch.from_dlpack(array[:, ::2])
    np.testing.assert_array_equal(back.numpy(), source.numpy().T[1:5:2, ::2])
    assert back.data_ptr() == source.t()[1:5:2].data_ptr()


def test_torch_tensors_as_inputs_of_operators(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    out = chipdock.run_op("Add", x.t(), x)
    np.testing.assert_array_equal(out.numpy(), (x.t() + x).numpy())


def test_torch_that_needs_a_gradient_is_refused_by_torch(torch):
    with pytest.raises(Exception, match="grad"):
        chipdock.from_dlpack(torch.ones(2, requires_grad=True))


def test_negative_strides_reach_back_before_the_first_element():
    source = np.arange(10)
    array = chipdock.from_dlpack(source[::-1])
    np.testing.assert_array_equal(array.numpy(), source[::-1])
    np.testing.assert_array_equal(chipdock.run_op("Add", array, array).numpy(), 2 * source[::-1])
    np.testing.assert_array_equal(np.from_dlpack(array), source[::-1])


def test_capsule_kinds():
    array = chipdock.array(np.zeros(3))
    assert _name(array.__dlpack__()) == b"dltensor"
    assert _name(array.__dlpack__(max_version=(0, 8))) == b"dltensor"
    assert _name(array.__dlpack__(max_version=(1, 0))) == b"dltensor_versioned"
    assert _name(array.__dlpack__(max_version=(2, 0))) == b"dltensor_versioned"
    assert array.__dlpack_device__() == (1, 0)


def test_consumed_capsules_are_renamed():
    array = chipdock.array(np.zeros(3))

    class Once:
        def __init__(self):
            self.capsule = array.__dlpack__(max_version=(1, 1))

        def __dlpack__(self, **_):
            return self.capsule

    once = Once()
    chipdock.from_dlpack(once)
    assert _name(once.capsule) == b"used_dltensor_versioned"
    with pytest.raises((ValueError, BufferError)):
        chipdock.from_dlpack(once)


@pytest.mark.parametrize("version", [None, (1, 1)])
def test_capsules_that_nobody_consumes_free_what_they_hold(version):
    device = chipdock.device("cpu:0")
    gc.collect()
    before = device.memory_stats()["used_bytes"]
    for _ in range(10):
        chipdock.array(np.zeros(1 << 16, np.uint8)).__dlpack__(max_version=version)
    gc.collect()
    assert device.memory_stats()["used_bytes"] == before


def test_an_export_outlives_its_array():
    device = chipdock.device("cpu:0")
    gc.collect()
    before = device.memory_stats()["used_bytes"]
    out = np.from_dlpack(chipdock.array(np.arange(5000)))
    gc.collect()
    assert device.memory_stats()["used_bytes"] > before
    np.testing.assert_array_equal(out, np.arange(5000))
    del out
    gc.collect()
    assert device.memory_stats()["used_bytes"] == before


def test_the_producer_lives_as_long_as_the_array():
    class Holder(np.ndarray):
        pass

    source = np.arange(8).view(Holder)
    gone = weakref.ref(source)
    array = chipdock.from_dlpack(source)
    view = array[::2]
    del source, array
    gc.collect()
    assert gone() is not None
    np.testing.assert_array_equal(view.numpy(), [0, 2, 4, 6])
    del view
    gc.collect()
    assert gone() is None


def test_read_only_memory_stays_read_only():
    source = np.arange(4)
    source.setflags(write=False)
    array = chipdock.from_dlpack(source)
    assert not array.numpy().flags.writeable
    assert not array[1:].numpy().flags.writeable
    with pytest.raises(chipdock.errors.FailedPreconditionError, match="read-only"):
        array.copy_from(np.zeros(4, np.int64))
    assert not np.from_dlpack(array).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        array.__dlpack__()
    assert np.from_dlpack(array, copy=True).flags.writeable
    np.testing.assert_array_equal(source, [0, 1, 2, 3])


def test_copy_is_made_only_when_asked():
    array = chipdock.array(np.arange(6.0))
    copied = np.from_dlpack(array[::2], copy=True)
    assert not np.shares_memory(copied, array.numpy())
    np.testing.assert_array_equal(copied, [0, 2, 4])
    assert np.shares_memory(np.from_dlpack(array[::2], copy=False), array.numpy())


@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn", "float6_e3m2fn"])
def test_sub_byte_types_go_only_by_versioned_capsules(name):
    source = (np.arange(6) % 2).astype(getattr(ml_dtypes, name))
    array = chipdock.array(source)
    with pytest.raises(BufferError, match="versioned"):
        array.__dlpack__()

    class Through:
        def __dlpack__(self, **_):
            return array.__dlpack__(max_version=(1, 1))

    back = chipdock.from_dlpack(Through())
    assert back.dtype == source.dtype
    assert back.numpy().tobytes() == source.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1, 1)])
def test_scalars_and_empty_tensors(shape):
    source = np.ones(shape, np.float32)
    array = chipdock.from_dlpack(source)
    assert array.shape == shape
    out = np.from_dlpack(array)
    assert out.shape == shape
    np.testing.assert_array_equal(out, source)
    np.testing.assert_array_equal(np.from_dlpack(chipdock.array(source)), source)


def test_a_request_for_another_device_is_refused():
    array = chipdock.array(np.zeros(2))
    assert array.__dlpack__(dl_device=(1, 0)) is not None
    with pytest.raises(BufferError, match=r"\(1, 0\)"):
        array.__dlpack__(dl_device=(2, 0))


def test_memory_that_only_the_device_sees_is_not_exported():
    array = chipdock.array(np.zeros(2), open_fake("nano"))
    assert array.__dlpack_device__() == (12, 0)
    with pytest.raises(BufferError, match="nano:0"):
        array.__dlpack__()
    with pytest.raises((BufferError, ValueError, RuntimeError)):
        np.from_dlpack(array)


def test_errors_of_producers_come_through():
    with pytest.raises(BufferError, match="given away"):
        chipdock.from_dlpack(NoLongerThere())
    for bad in (3, "text", None):
        with pytest.raises((AttributeError, TypeError)):
            chipdock.from_dlpack(bad)

    class Wrong:
        def __dlpack__(self, **_):
            return "no capsule"

    with pytest.raises((ValueError, TypeError, BufferError)):
        chipdock.from_dlpack(Wrong())


@pytest.mark.threads
def test_many_threads_exchange_one_array():
    array = chipdock.array(np.arange(64))
    wrong = []

    def work():
        for _ in range(200):
            out = np.from_dlpack(chipdock.from_dlpack(np.from_dlpack(array)[::2])[::2])
            if out[1] != 4:
                wrong.append(out)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
