# SPDX-License-Identifier: Apache-2.0
"""Loading and running ONNX models."""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import onnx

from chipdock import _core
from chipdock._defaults import Variants, default_inputs
from chipdock._environment import choice
from chipdock._explain import CapturedSegment, Explanation, NodePlacement
from chipdock._forks import lock_of
from chipdock._inputs import as_input
from chipdock._lower import lower
from chipdock._onnx_file import read_model
from chipdock._onnx_types import ValueInfo
from chipdock._profile import active_profiler
from chipdock._registry import device as find_device
from chipdock._registry import fallback_policy, host_device
from chipdock.errors import InvalidArgumentError

__all__ = [
    "ArrayLike",
    "Binding",
    "CapturedSegment",
    "Explanation",
    "FallbackPolicy",
    "FallbackWarning",
    "Model",
    "NodePlacement",
    "load",
]

ArrayLike: TypeAlias = (
    "_core.Array | np.ndarray | Sequence[object] | float | int | bool | str | None"
)
FallbackPolicy: TypeAlias = Literal["error", "warn", "allow"]


_MOST_THREADS = 4096
_CACHED_SIGNATURES = 256  # a few kilobytes each


class FallbackWarning(UserWarning):
    """Nodes run on the embedded plugin because the device has no kernel for them."""


class Model:
    """A model loaded on a device. Many threads may run it at once; one load serves every shape.

    Attributes:
        inputs: What every run has to be given.
        defaults: Inputs that a run may leave out, as the model has a value for them. The first run
            that gives one prepares the model anew, with that input in place of a constant.
        outputs: What a run computes.
        name: For messages.
    """

    def __init__(
        self,
        plan: "_core.Plan",
        inputs: Sequence[ValueInfo],
        outputs: Sequence[ValueInfo],
        name: str,
        variants: Variants | None = None,
    ) -> None:
        """Use load()."""
        self._plan = plan
        self._variants = variants
        self.inputs = tuple(inputs)
        self.defaults = () if variants is None else variants.defaults
        self.outputs = tuple(outputs)
        self.name = name
        self._input_names = tuple(v.name for v in inputs)
        self._output_names = tuple(v.name for v in outputs)

    @property
    def device(self) -> "_core.Device":
        """Device that the model is loaded on."""
        return self._plan.device

    def run(
        self,
        inputs: Mapping[str, ArrayLike],
        *,
        stream: "_core.Stream | None" = None,
        seed: int | None = None,
    ) -> dict[str, Any]:
        """Run the model.

        Args:
            inputs: A value for every input name, and for those of `defaults` as wanted: Arrays (on
                any device), numpy arrays or anything with DLPack; dtype and fixed extents as the
                model declares, nothing is cast. Arrays of str for strings, a list for a sequence,
                None for an empty optional.
            stream: Stream to run on; the call returns when the work has ended. If the stream is
                being captured, the work becomes part of the graph: the call returns at once, the
                inputs are read and the outputs written at each launch.
            seed: For random operators; default: a fresh one per run.

        Returns:
            Output name to Array on the model's device, in the model's order; strings come as an
            object array of str, a sequence as a list, an empty optional as None.

        Raises:
            InvalidArgumentError: A name, dtype or shape does not fit; named.
            FailedPreconditionError: The stream is being captured, and an input is not in the
                device's memory or a node cannot be captured; named. The capture goes on.
            OutOfMemoryError: Memory ran out on the way; the model can be run again.
            ChipdockError: An error of the device.
        """
        if not isinstance(inputs, Mapping):  # callers without a type checker
            kind = type(inputs).__name__  # type: ignore[unreachable]
            text = f"INVALID_ARGUMENT: run() takes a mapping from input name to value, got {kind}"
            raise InvalidArgumentError(text)
        plan, infos = self._chosen(inputs)
        values = [as_input(inputs[info.name], info) for info in infos]
        results = plan.run(values, stream, active_profiler(), seed)
        return dict(zip(self._output_names, results, strict=True))

    def __call__(self, *arrays: ArrayLike) -> Any:  # noqa: ANN401  as run()
        """Run the model on `inputs` in order; returns its output, or a tuple of several."""
        if len(arrays) != len(self._input_names):
            raise InvalidArgumentError(
                f"INVALID_ARGUMENT: {self.name} has {len(self._input_names)} inputs "
                f"{list(self._input_names)}, {len(arrays)} were given"
            )
        values = [as_input(v, info) for v, info in zip(arrays, self.inputs, strict=True)]
        results = self._plan.run(values, None, active_profiler())
        return results[0] if len(results) == 1 else tuple(results)

    def bind(self) -> "Binding":
        """Make a set of bound inputs and outputs, for runs that reuse memory."""
        return Binding(self)

    def explain(self) -> Explanation:
        """Say where every node runs and why, and what has been captured by now.

        It is about runs that leave out all of `defaults`.
        """
        segments = (
            CapturedSegment(dict(zip(self._input_names, shapes, strict=True)), tuple(nodes))
            for shapes, nodes in self._plan.segments()
        )
        return Explanation(
            tuple(NodePlacement(**line) for line in self._plan.report()), tuple(segments)
        )

    def memory(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Bytes that a run with these input shapes takes.

        Args:
            shapes: Extents by input name, those of `defaults` as wanted.

        Returns:
            weight_bytes, activation_bytes (with shared storage), activation_lower_bound (largest
            sum of live activations), layout_padding_bytes (of that, what private layouts take
            beside the elements), workspace_bytes, arena_bytes, and the number of steps.

        Raises:
            InvalidArgumentError: A name is missing, or the shapes do not fit the model.
        """
        plan, infos = self._chosen(shapes)
        return plan.memory([list(shapes[info.name]) for info in infos])

    def _check_names(self, given: Mapping[str, object]) -> None:
        optional = [v.name for v in self.defaults]
        missing = [n for n in self._input_names if n not in given]
        unknown = [n for n in given if n not in self._input_names and n not in optional]
        if missing or unknown:
            more = f" and, with defaults, {optional}" if optional else ""
            raise InvalidArgumentError(
                f"INVALID_ARGUMENT: {self.name} has the inputs {list(self._input_names)}{more}; "
                f"missing: {missing}, unknown: {unknown}"
            )

    def _chosen(self, given: Mapping[str, object]) -> "tuple[_core.Plan, tuple[ValueInfo, ...]]":
        """The plan for a run with these inputs, and its inputs in order."""
        if len(given) == len(self._input_names) and all(n in given for n in self._input_names):
            return self._plan, self.inputs
        self._check_names(given)
        assert self._variants is not None  # some of `defaults` are given
        return self._variants.find(given)

    def __repr__(self) -> str:
        """Name, device and signature."""
        return f"<chipdock.Model {self.name} on {self.device.name}: {list(self._input_names)}>"


class Binding:
    """Inputs and outputs bound to Arrays: runs allocate nothing, and outputs land where wanted.

    An output may be bound to the Array of an input (a KV cache): it is written when nothing reads
    the input any more. One thread at a time may run a binding.
    """

    def __init__(self, model: Model) -> None:
        """Use Model.bind()."""
        self._model = model
        self._inputs: dict[str, object] = {}
        self._outputs: dict[str, _core.Array] = {}
        self._lock = lock_of(self)

    def input(self, name: str, value: ArrayLike) -> "Binding":
        """Bind an input; returns self.

        Raises:
            InvalidArgumentError: No such input, or another dtype.
        """
        known = (*self._model.inputs, *self._model.defaults)
        info = next((v for v in known if v.name == name), None)
        if info is None:
            self._model._check_names({**dict.fromkeys(self._model._input_names), name: None})
        else:
            self._inputs[name] = as_input(value, info)
        return self

    def output(self, name: str, array: "_core.Array") -> "Binding":
        """Bind an output to a contiguous Array on the model's device; returns self.

        Raises:
            InvalidArgumentError: No such output, another dtype or device, or a strided view.
        """
        info = next((v for v in self._model.outputs if v.name == name), None)
        if info is None:
            known = list(self._model._output_names)
            raise InvalidArgumentError(
                f"INVALID_ARGUMENT: no output {name!r}, the model has {known}"
            )
        if not isinstance(array, _core.Array):  # callers without a type checker
            kind = type(array).__name__  # type: ignore[unreachable]
            text = f"INVALID_ARGUMENT: output {name!r} is bound to a {kind}, it must be an Array"
            raise InvalidArgumentError(text)
        if array.read_only:
            raise InvalidArgumentError(
                f"INVALID_ARGUMENT: output {name!r} needs memory that is not read-only"
            )
        if (
            array.dtype != info.dtype
            or array.device != self._model.device
            or not array.is_contiguous
        ):
            raise InvalidArgumentError(
                f"INVALID_ARGUMENT: output {name!r} needs a contiguous {info.dtype} Array on "
                f"{self._model.device.name}, got {array.dtype} on {array.device.name}"
            )
        for other, bound in self._outputs.items():
            if other != name and array.overlaps(bound):
                text = (
                    f"INVALID_ARGUMENT: output {name!r} would overlap the memory bound to {other!r}"
                )
                raise InvalidArgumentError(text)
        self._outputs[name] = array
        return self

    def run(
        self, *, stream: "_core.Stream | None" = None, seed: int | None = None
    ) -> dict[str, "_core.Array"]:
        """Run on what is bound; outputs that are not bound are allocated.

        Args:
            stream: As of Model.run; a captured one makes the run part of its graph.
            seed: As of Model.run.

        Returns:
            Output name to Array; those bound are the bound ones.

        Raises:
            InvalidArgumentError: An input is not bound, or an output's shape is not the bound
                one's.
            FailedPreconditionError: As of Model.run.
        """
        model = self._model
        with self._lock:
            plan, infos = model._chosen(self._inputs)
            values = [self._inputs[info.name] for info in infos]
            bound = [self._outputs.get(n) for n in model._output_names]
            results = plan.run(values, stream, active_profiler(), seed, bound)
        return dict(zip(model._output_names, results, strict=True))


def _check_whole(name: str, value: object, most: int) -> None:
    """Refuse anything but None and whole numbers from 1 to `most`."""
    if value is None:
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not 1 <= value <= most:  # type: ignore[operator]
        text = f"INVALID_ARGUMENT: {name} is {value!r}, it must be a whole number from 1 to {most}"
        raise InvalidArgumentError(text)


def load(
    source: "str | os.PathLike[str] | bytes | onnx.ModelProto",
    device: "str | _core.Device" = "cpu:0",
    fallback: FallbackPolicy = "error",
    threads: int | None = None,
    memory_limit: int | None = None,
) -> Model:
    """Load an ONNX model on a device.

    Args:
        source: Path of a .onnx file, its bytes, or a ModelProto.
        device: Where to run it.
        fallback: What to do with nodes the device has no kernel for: "error" refuses the model,
            "warn" and "allow" run them on the embedded plugin, with copies. Views never fall back.
        threads: Host threads that kernels may use; default: as the device was opened.
        memory_limit: Bytes of weights, activations and workspace that the model may take on the
            device; outputs are the caller's and do not count.

    Returns:
        The model, ready to run with any input shapes that it allows.

    Raises:
        InvalidArgumentError: Not a valid model, or a bad argument.
        UnsupportedError: Nodes without a kernel, all named.
        OutOfMemoryError: The weights do not fit.
    """
    policy = fallback_policy(fallback)
    _check_whole("threads", threads, _MOST_THREADS)
    _check_whole("memory_limit", memory_limit, 2**63 - 1)
    target = find_device(device)
    options = {
        "fallback": policy,
        "threads": threads or 0,
        "memory_limit": memory_limit or 0,
        "deterministic": False,
        "cached_signatures": _CACHED_SIGNATURES,
        "capture": choice("CHIPDOCK_CAPTURE", "auto", "on", "off"),
        "layouts": choice("CHIPDOCK_LAYOUTS", "on", "off") == "on",
    }

    def compiled(graph: "_core.ModelGraph") -> "_core.Plan":
        return _core.Plan.compile(graph, target, host_device(target), options)

    with read_model(source) as file:
        name = file.name
        graph, inputs, outputs = lower(file, target)
        variants = None
        if default_inputs(file.proto):
            variants = Variants(file.kept(), target, compiled)
    del file  # a ModelProto is as large as its weights, of which the graph has its own copy
    model = Model(compiled(graph), inputs, outputs, name, variants)
    if policy == "warn":
        fallen = sorted({n.op for n in model.explain().nodes if n.placement == "fallback"})
        if fallen:
            text = f"{name} on {target.name}: no kernel for {', '.join(fallen)}, run by the host"
            warnings.warn(text, FallbackWarning, stacklevel=2)
    return model
