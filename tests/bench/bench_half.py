# SPDX-License-Identifier: Apache-2.0
"""half: products of bfloat16 with constant weights, and two Llama blocks in bfloat16.

onnxruntime has no MatMul of bfloat16 on the CPU. OpenVINO is told to compute in bfloat16, too.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx

import chipdock
from bench import peers
from bench.harness import Result, Settings, compare, in_turns
from bench.models import halves, transformers
from bench.models.net import saved

_SIZES = ((1, 4096, 4096), (8, 4096, 4096), (128, 768, 3072), (512, 1024, 1024))
_QUICK = ((3, 33, 17),)


def _products(settings: Settings, folder: Path) -> list[Result]:
    results = []
    torch = None if settings.quick else peers.torch(settings.threads)
    for m, k, n in _QUICK if settings.quick else _SIZES:
        path = folder / f"{k}x{n}.onnx"
        onnx.save(halves.matmul(k, n), path)
        x = np.random.default_rng(2).standard_normal((m, k)).astype(ml_dtypes.bfloat16)
        model = chipdock.load(path, threads=settings.threads)
        a = chipdock.array(x)
        wide = chipdock.load(halves.matmul(k, n, onnx.TensorProto.FLOAT), threads=settings.threads)
        b = chipdock.array(x.astype(np.float32))
        got, wanted = model.run({"x": a})["y"].numpy(), wide.run({"x": b})["y"].numpy()
        np.testing.assert_allclose(got.astype(np.float32), wanted, rtol=0.02, atol=0.05)
        runners: dict[str, Callable[[], object]] = {
            "chipdock": partial(model.run, {"x": a}),
            "chipdock f32": partial(wide.run, {"x": b}),
        }
        if torch is not None:
            t = torch.from_numpy(x.astype(np.float32)).to(torch.bfloat16)
            w = torch.randn((n, k)).to(torch.bfloat16)
            runners["torch"] = partial(torch.nn.functional.linear, t, w)
        samples = in_turns(runners, settings, idle_s=settings.idle_s)
        results += compare("half", f"MatMul bf16, {m}x{k} by {k}x{n}", samples, "us")
    return results


def _blocks(settings: Settings, folder: Path) -> list[Result]:
    blocks, width = 2, 64 if settings.quick else 1024
    stack = partial(transformers.llama_stack, blocks=blocks, width=width)
    path = halves.narrowed(saved(stack, folder, "llama"))
    ours = chipdock.load(path, threads=settings.threads)
    infer = None
    if not settings.quick and peers.present("openvino"):
        infer = peers.openvino_request(path, settings.threads, "bf16")
    torch = None if settings.quick else peers.torch(settings.threads)
    theirs = None
    if torch is not None:
        theirs = halves.torch_llama(torch, transformers.LLAMA_VOCABULARY, blocks, width)
    results = []
    for length in (2,) if settings.quick else (1, 16, 128):
        ids = np.random.default_rng(4).integers(0, transformers.LLAMA_VOCABULARY, (1, length))
        feeds = {"input_ids": chipdock.array(ids)}
        logits = next(iter(ours.run(feeds).values())).numpy().astype(np.float32)
        assert np.isfinite(logits).all()
        runners: dict[str, Callable[[], object]] = {"chipdock": partial(ours.run, feeds)}
        if infer is not None:
            runners["openvino"] = partial(infer, {"input_ids": ids})
        if torch is not None and theirs is not None:
            runners["torch"] = partial(theirs, torch.from_numpy(ids))
        if len(runners) > 1:
            samples = in_turns(runners, settings, idle_s=settings.idle_s)
            case = f"{blocks} Llama blocks bf16, {length} tokens"
            results += compare("half", case, samples, "ms")
    return results


def run_half(settings: Settings) -> list[Result]:
    """Return products and blocks of bfloat16 against f32, torch and OpenVINO."""
    with tempfile.TemporaryDirectory(prefix="chipdock-bench-") as name:
        return _products(settings, Path(name)) + _blocks(settings, Path(name))
