# SPDX-License-Identifier: Apache-2.0
"""Weights that stay in the model's file: the same model as protobuf reads, from any file."""

import gc
import os
import random
import shutil
import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import chipdock
from chipdock._onnx_file import read_model, tensor_array
from chipdock._weights_apart import OWN, weights_apart
from chipdock.errors import InvalidArgumentError

WIDE = 1 << 19
"""Elements of float32 in a weight that makes a file large enough."""


def model(weights, **more):
    """x + each of the weights, [WIDE] or scalars."""
    nodes, last = [], "x"
    for tensor in weights:
        nodes.append(helper.make_node("Add", [last, tensor.name], [f"with_{tensor.name}"]))
        last = f"with_{tensor.name}"
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", 1, [WIDE])], [value(last, 1, [WIDE])], list(weights), **more
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def weight(name, seed=0, size=WIDE):
    return numpy_helper.from_array(
        np.random.default_rng(seed).standard_normal(size, np.float32), name
    )


@pytest.fixture
def file(tmp_path):
    def written(proto):
        path = tmp_path / "model.onnx"
        path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
        return path

    return written


def apart(path):
    with path.open("rb") as handle:
        light = weights_apart(handle.fileno())
    return None if light is None else onnx.ModelProto.FromString(light)


def test_a_large_weight_stays_and_all_else_is_as_it_was(file):
    proto = model([weight("w"), numpy_helper.from_array(np.float32(2), "small")], doc_string="hi")
    light = apart(file(proto))
    kept = light.graph.initializer[0]
    where = {entry.key: entry.value for entry in kept.external_data}
    assert where["location"] == OWN
    assert int(where["length"]) == 4 * WIDE
    assert light.ByteSize() < 10_000
    del kept.external_data[:]
    kept.ClearField("data_location")
    kept.raw_data = proto.graph.initializer[0].raw_data
    assert light == proto


def test_results_are_those_of_the_bytes(file):
    proto = model([weight("w"), weight("v", 1), weight("tiny", 2, 1)])
    path = file(proto)
    x = np.arange(WIDE, dtype=np.float32)
    (from_file,) = chipdock.load(path).run({"x": x}).values()
    (from_bytes,) = chipdock.load(path.read_bytes()).run({"x": x}).values()
    np.testing.assert_array_equal(from_file.numpy(), from_bytes.numpy())


@pytest.mark.parametrize(
    "dtype",
    [
        TensorProto.BFLOAT16,
        TensorProto.INT4,
        TensorProto.FLOAT6E2M3,
        TensorProto.FLOAT8E4M3FN,
        TensorProto.INT64,
    ],
)
def test_every_way_of_storing_elements(file, dtype):
    size = 1 << 21
    whole = helper.make_tensor("w", dtype, [size], np.arange(size) % 7 - 3)
    if not whole.raw_data:  # written as numbers, which protobuf has to read
        whole = numpy_helper.from_array(numpy_helper.to_array(whole), "w")
    proto = model([weight("v")])
    proto.graph.initializer.append(whole)
    path = file(proto)
    with read_model(path) as found, read_model(proto) as known:
        tensors = found.proto.graph.initializer
        assert tensors[1].data_location == TensorProto.EXTERNAL
        for mine, theirs in zip(tensors, proto.graph.initializer, strict=True):
            a, b = tensor_array(mine, found), tensor_array(theirs, known)
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()


def test_small_files_and_those_written_in_a_strange_way_are_parsed_whole(file):
    assert apart(file(model([weight("w", size=100)]))) is None
    twice = model([weight("w")])
    assert apart(file(twice.SerializeToString() * 2)) is None  # two graphs, to be merged
    group = b"\x0b" + twice.SerializeToString()  # a group, which proto2 had
    assert apart(file(group)) is None


def test_a_weight_that_has_its_data_elsewhere_is_left_alone(file):
    outside = TensorProto(name="w", data_type=1, dims=[WIDE], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "other.bin"), ("offset", "0"), ("length", str(4 * WIDE))):
        outside.external_data.add(key=key, value=value)
    outside.doc_string = "-" * 5000
    proto = model([weight("v"), outside])
    assert apart(file(proto)).graph.initializer[1] == outside


def test_zeros_behind_a_model_end_the_walk_at_once(file):
    data = model([weight("w")]).SerializeToString()
    assert apart_or_error(file(data + bytes(1 << 20))) is None
    with pytest.raises(InvalidArgumentError, match=rf"\({len(data) + (1 << 20)} bytes\) is not"):
        chipdock.load(file(data + bytes(1 << 20)))


def test_what_is_longer_than_a_message_and_damaged_is_not_read(file):
    path = file(b"")
    os.truncate(path, 1 << 40)  # sparse: it takes no room
    with pytest.raises(InvalidArgumentError, match="protobuf ends at 2147483647 bytes"):
        chipdock.load(path)


def test_the_size_of_a_damaged_file_is_its_own(file):
    data = model([weight("w")], doc_string="d" * 5000).SerializeToString()
    at = data.rindex(b"d" * 5000) - 3  # the tag of the text: now a group's end
    damaged = data[:at] + b"\x54" + data[at + 1 :]
    with pytest.raises(InvalidArgumentError, match=rf"\({len(data)} bytes\)"):
        chipdock.load(file(damaged))


@pytest.mark.parametrize("cut", [1, 100, 4 * WIDE, 4 * WIDE + 60])
def test_a_truncated_file_is_refused_as_before(file, cut):
    data = model([weight("w")]).SerializeToString()
    with pytest.raises(InvalidArgumentError, match="not an ONNX model or is truncated"):
        chipdock.load(file(data[:-cut]))


def test_damaged_bytes_never_do_more_than_raise(file):
    data = model([weight("w")]).SerializeToString()
    chance = random.Random(3)
    interesting = [*range(200), *range(len(data) - 200, len(data))]
    for _ in range(60):
        damaged = bytearray(data)
        for at in chance.sample(interesting, 3):
            damaged[at] = chance.randrange(256)
        path = file(bytes(damaged))
        light = apart_or_error(path)
        assert light is None or isinstance(light, bytes)


def apart_or_error(path):
    with path.open("rb") as handle:
        return weights_apart(handle.fileno())


def test_a_file_that_shrinks_meanwhile_is_told(file):
    path = file(model([weight("w")]))
    with read_model(path) as found:
        os.truncate(path, 1 << 20)
        with pytest.raises(InvalidArgumentError, match="file, which ends at 1048576 by"):
            tensor_array(found.proto.graph.initializer[0], found)


def test_a_file_that_is_replaced_meanwhile_is_not_mixed_in(file, tmp_path):
    path = file(model([weight("w")]))
    with read_model(path) as found:
        other = tmp_path / "other.onnx"
        shutil.copy(path, other)
        other.write_bytes(bytes(len(path.read_bytes())))
        other.replace(path)
        array = tensor_array(found.proto.graph.initializer[0], found)
    np.testing.assert_array_equal(array, numpy_helper.to_array(weight("w")))


def test_no_weight_is_held_twice_while_it_is_read(file):
    path = file(model([weight("w", size=WIDE)]))
    peaks = []
    for _ in range(4):  # the first imports, and whatever else is done once by whoever comes first
        gc.collect()
        tracemalloc.start()
        chipdock.load(path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert min(peaks) < 1.5 * 4 * WIDE
