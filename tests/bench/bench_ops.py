# SPDX-License-Identifier: Apache-2.0
"""run_op: one Add from Python; rmsnorm: one operator that bandwidth and page faults decide."""

import ctypes
from collections.abc import Callable

import numpy as np

import chipdock
from bench import native, peers
from bench.harness import Result, Settings, compare, in_turns

EPSILON = 1e-5


def run_run_op(settings: Settings) -> list[Result]:
    """Return run_op("Add") on two Arrays against torch.add and numpy.add."""
    results = []
    torch = None if settings.quick else peers.torch(settings.threads)
    for count in (6,) if settings.quick else (6, 1000, 1 << 20):
        x = np.linspace(0, 1, count, dtype=np.float32)
        y = x.copy()
        a, b = chipdock.array(x), chipdock.array(y)
        run_op = chipdock.run_op
        runners: dict[str, Callable[[], object]] = {
            "chipdock": lambda run_op=run_op, a=a, b=b: run_op("Add", a, b),
            "numpy": lambda x=x, y=y: np.add(x, y),
        }
        aims = {"torch": 1.0}
        if torch is not None:
            t, u = torch.from_numpy(x.copy()), torch.from_numpy(x.copy())
            runners["torch"] = lambda t=t, u=u, add=torch.add: add(t, u)
        samples = in_turns(runners, settings)
        name = {6: "6", 1000: "1k", 1 << 20: "1M"}[count]
        results += compare("run_op", f"Add, {name} elements", samples, "us", aims=aims)
    if torch is None and not settings.quick:
        results.append(Result("run_op", "Add", "torch", cause="torch is not installed"))
    return results


class _HandWritten:
    """native/rms_norm.c, into memory that is reused from call to call."""

    def __init__(self, threads: int) -> None:
        flags = ("-O3", "-march=native", "-fno-math-errno")
        self.function = ctypes.CDLL(str(native.c_library("rms_norm", *flags))).rms_norm
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self.function.argtypes = [pointer, pointer, pointer, size, size, ctypes.c_float]
        self.function.argtypes += [ctypes.c_int, ctypes.c_int]
        self.threads = threads

    def runner(
        self, x: np.ndarray, scale: np.ndarray, y: np.ndarray, *, streaming: bool
    ) -> Callable[[], int]:
        places = (x.ctypes.data, scale.ctypes.data, y.ctypes.data, *x.shape)
        return lambda: self.function(*places, EPSILON, self.threads, int(streaming))


def _numpy_rms_norm(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    factor = 1 / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + np.float32(EPSILON))
    return x * factor * scale


def _aligned(shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    raw = np.zeros(count + 16, np.float32)
    start = (-raw.ctypes.data % 64) // 4
    return raw[start : start + count].reshape(shape)


def run_rms_norm(settings: Settings) -> list[Result]:
    """Return RMSNormalization of a square fp32 matrix against C by hand and the frameworks."""
    side = 64 if settings.quick else 4096
    rng = np.random.default_rng(1)
    x = rng.standard_normal((side, side), np.float32)
    scale = rng.standard_normal(side, np.float32)
    hand, target = _HandWritten(settings.threads), _aligned(x.shape)
    a, s = chipdock.array(x), chipdock.array(scale)
    runners: dict[str, Callable[[], object]] = {
        "chipdock": lambda: chipdock.run_op("RMSNormalization", a, s, epsilon=EPSILON),
        "C, ordinary stores": hand.runner(x, scale, target, streaming=False),
        "C, streaming stores": hand.runner(x, scale, target, streaming=True),
        "numpy": lambda: _numpy_rms_norm(x, scale),
    }
    if not settings.quick:
        if (torch := peers.torch(settings.threads)) is not None:
            t, u = torch.from_numpy(x.copy()), torch.from_numpy(scale)
            runners["torch eager"] = lambda: torch.rms_norm(t, (side,), u, EPSILON)
        if (session := peers.rms_norm_session(side, EPSILON, settings.threads)) is not None:
            runners["onnxruntime"] = lambda: session.run(None, {"x": x, "scale": scale})
    wanted = _numpy_rms_norm(x, scale)
    for name in ("C, ordinary stores", "C, streaming stores"):
        target[:] = 0
        runners[name]()
        np.testing.assert_allclose(target, wanted, rtol=1e-4, atol=1e-5)
    got = chipdock.run_op("RMSNormalization", a, s, epsilon=EPSILON).numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    samples = in_turns(runners, settings, sample_s=1e-3, idle_s=settings.idle_s)
    return compare("rmsnorm", f"{side}x{side} fp32", samples, "ms")
