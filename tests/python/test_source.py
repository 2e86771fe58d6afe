# SPDX-License-Identifier: Apache-2.0
"""compile_source, functions and launches: the cpu plugin's source door from Python."""

import numpy as np
import pytest
from api_support import open_cpu, open_fake

import chipdock

PRELUDE = """
#include <stdint.h>
typedef struct {
  uint64_t grid[3], block[3], index[3];
  void* local;
  uint64_t local_bytes;
} Block;
"""
SCALE = """
void scale(void* const* a, const Block* b) {
  const float* x = a[0];
  float* y = a[1];
  const int64_t n = *(const int64_t*)a[2];
  const float factor = *(const float*)a[3];
  float* scratch = a[4];
  const int64_t begin = (int64_t)(b->index[0] * b->block[0]);
  for (int64_t i = begin; i < begin + (int64_t)b->block[0] && i < n; ++i) {
    scratch[i - begin] = x[i] * factor;
    y[i] = scratch[i - begin];
  }
}
void scalars(void* const* a, const Block* b) {
  double* y = a[0];
  y[0] = *(const double*)a[1];
  y[1] = *(const int8_t*)a[2];
  y[2] = *(const uint8_t*)a[3];
  y[3] = a[4] == 0;
  y[4] = (double)(b->grid[1] * 100 + b->block[2]);
}
"""


@pytest.fixture(params=["none", "mask=stream.*+event.*", "validate"])
def device(request):
    opened = open_cpu(request.param)
    yield opened
    opened.plugin.shutdown()


@pytest.fixture(scope="module")
def shared():
    return open_cpu()


@pytest.fixture(scope="module")
def module(shared):
    return shared.compile_source("c", PRELUDE, SCALE)


def launch(function, x, y, count, **more):
    arguments = [x, y, count, 2.5, chipdock.LocalBytes(16)]
    function.launch((count + 3) // 4, 4, arguments, **more)


@pytest.mark.slow
def test_a_function_runs_inline_and_on_a_stream(device):
    function = device.compile_source("c", PRELUDE, SCALE).function("scale")
    values = np.arange(10, dtype=np.float32)
    x, y = chipdock.array(values, device), chipdock.array(np.zeros(12, np.float32), device)
    launch(function, x, y, 10)
    np.testing.assert_array_equal(y.numpy(), [*(values * 2.5), 0, 0])
    stream = chipdock.Stream(device)
    out = chipdock.empty((10,), np.float32, device)
    launch(function, x[2:], out, 8, stream=stream)
    stream.copy(out, chipdock.empty((10,), np.float32, device))
    del x  # its memory waits for the stream
    stream.sync()
    np.testing.assert_array_equal(out.numpy()[:8], values[2:] * 2.5)


def test_scalars_go_as_what_they_are(shared, module):
    y = chipdock.empty((5,), np.float64, shared)
    arguments = [y, np.float64(0.1), np.int8(-3), True, None]
    module.function("scalars").launch((1, 7), (1, 1, 5), arguments)
    np.testing.assert_array_equal(y.numpy(), [0.1, -3, 1, 1, 705])


def test_a_function_keeps_its_module(shared):
    function = shared.compile_source("c", PRELUDE, SCALE).function("scalars")
    y = chipdock.empty((5,), np.float64, shared)
    function.launch(1, 1, [y, np.float64(2), np.int8(1), False, y])
    np.testing.assert_array_equal(y.numpy(), [2, 1, 0, 0, 101])
    assert function.name == "scalars"
    assert function.info()["max_block_threads"] >= 1


def test_caps_and_options(shared):
    caps = shared.compile_caps()
    assert caps["dialects"]["c"] >= (11, 0)
    assert caps["warp_size"] == 1
    text = PRELUDE + "void f(void* const* a, const Block* b) { *(int64_t*)a[0] = N; (void)b; }"
    options = [("define:N", "42"), ("optimize", "0")]
    module = shared.compile_source("c", "", text, version=(11, 0), options=options)
    y = chipdock.empty((), np.int64, shared)
    module.function("f").launch(1, 1, [y])
    assert y.numpy() == 42


def test_text_that_does_not_compile_gives_the_compilers_words(shared):
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="no_such_name"):
        shared.compile_source("c", PRELUDE, "int f(void) { return no_such_name; }")


@pytest.mark.parametrize(
    ("more", "error", "text"),
    [
        ({"dialect": "acme-c"}, chipdock.errors.UnsupportedError, "it takes c"),
        ({"version": (99, 0)}, chipdock.errors.UnsupportedError, "99"),
        ({"options": [("no_such", "1")]}, chipdock.errors.InvalidArgumentError, "no_such"),
    ],
)
def test_what_the_compiler_does_not_take_is_named(shared, more, error, text):
    with pytest.raises(error, match=text):
        shared.compile_source(**{"dialect": "c", "prelude": "", "text": "int x;", **more})


def test_a_name_that_is_not_there(module):
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="nowhere"):
        module.function("nowhere")


@pytest.mark.parametrize("name", ["nano"])
def test_a_plugin_without_the_door_says_so(name):
    device = open_fake(name)
    with pytest.raises(chipdock.errors.UnsupportedError, match="has no compile_source"):
        device.compile_source("c", "", "int x;")
    with pytest.raises(chipdock.errors.UnsupportedError, match="nano:0 compiles no source"):
        device.compile_caps()


def test_a_masked_door_is_closed():
    device = open_cpu("mask=compile.*")
    with pytest.raises(chipdock.errors.UnsupportedError, match="has no compile_source"):
        device.compile_source("c", "", "int x;")


@pytest.mark.parametrize(
    ("grid", "block", "text"),
    [(0, 1, "grid"), ((1, 2, 3, 4), 1, "grid"), (1, 0, "block"), (1, 2**33, "block")],
)
def test_extents_are_checked(shared, module, grid, block, text):
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=text):
        module.function("scalars").launch(grid, block, [])


def test_arguments_are_checked(shared, module):
    function = module.function("scalars")
    view = chipdock.array(np.zeros((4, 4)), shared)[:, 1]
    other = chipdock.array(np.zeros(4), open_cpu())
    for bad, text in ((view, "strided view"), (other, "not in memory of"), ("x", "must be an")):
        with pytest.raises(chipdock.errors.InvalidArgumentError, match=text):
            function.launch(1, 1, [bad])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="the stream is one of"):
        function.launch(1, 1, [], stream=chipdock.Stream(other.device))
