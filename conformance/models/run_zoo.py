# SPDX-License-Identifier: Apache-2.0
"""Runs models that others made: those of chipdock.models' catalogue, and the onnx package's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chipdock.conformance.case import Variant, fail
from chipdock.conformance.models.golden import (
    check_output,
    digest_of,
    read_golden,
    read_index,
    summarize,
)
from chipdock.conformance.opcases.execute import explained, load_on
from chipdock.conformance.target import HostLacks

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["LIGHT", "run_light", "run_zoo", "zoo_variants"]

LIGHT = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet",
         "squeezenet", "vgg19", "zfnet512")  # fmt: skip
"""The networks inside of the onnx package."""

_NEAR = 1e-3


def zoo_variants() -> Iterator[Variant]:
    """Yield a variant for each case that has a golden; the goldens' hashes are part of it."""
    for model, facts in read_index()["models"].items():
        for case, row in facts["cases"].items():
            name = f"{_plain(model)}_{_plain(case)}"
            yield Variant("f32", name, model=model, case=case, data=facts["data"], **row)


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def run_zoo(target: Target, variant: Variant) -> None:
    """Run a real model on an input that means something.

    Inputs are drawn by the host's libraries. Where those draw other ones than the golden is of,
    the same independent runtime has to compute it here and now.

    Raises:
        CheckError: An output, or the answer read out of it, is wrong.
        HostLacks: The model, an input or the golden for it cannot be had here.
        NotSupported: The plugin lists no kernel for a node.
    """
    import onnx  # noqa: PLC0415

    from chipdock.conformance.goldens import independent_run  # noqa: PLC0415
    from chipdock.models import catalogue, tasks  # noqa: PLC0415
    from chipdock.models.fetch import ModelUnavailable, fetch  # noqa: PLC0415

    try:
        item = catalogue.entry(variant.model)
        path = fetch(item)
        case = next(c for c in tasks.cases(item, path) if c.name == variant.case)
        if digest_of(case.feeds) == variant.inputs:
            goldens = read_golden(variant.model, variant.case, variant.outputs)
            source = "shipped"
        else:
            goldens = [summarize(output) for output in independent_run(path, case.feeds)]
            source = "computed here: inputs drawn by this host differ from the shipped golden's"
    except (ModelUnavailable, ImportError) as error:
        raise HostLacks(str(error)) from error
    model = onnx.load(path)
    loaded = load_on(target, model)
    with explained(target, model):
        outputs = {name: array.numpy() for name, array in loaded.run(dict(case.feeds)).items()}
    target.digest(*outputs.values())
    target.record(golden=source)
    worst: dict[str, Any] = {}
    for (name, got), golden in zip(outputs.items(), goldens, strict=True):
        evidence = check_output(got, golden, f"output {name}")
        if evidence["metric"] == "rel_l2" and evidence["value"] >= worst.get("value", 0.0):
            worst = evidence
    answer = case.decode(outputs)
    target.record(**worst, answer=answer)
    if answer != case.expected:
        fail(f"the answer is {answer!r}, right is {case.expected!r}",
             metric="answer", value=answer, limit=case.expected)  # fmt: skip


def run_light(target: Target, variant: Variant) -> None:
    """Run a network of the onnx package, whose weights are constants: it runs, and little more.

    Raises:
        CheckError: The output is not finite, or not near the one beside the network.
        HostLacks: The installed onnx has no such file.
        NotSupported: The plugin lists no kernel for a node.
    """
    import onnx  # noqa: PLC0415
    import onnx.backend.test  # noqa: PLC0415

    folder = Path(onnx.backend.test.__file__).parent / "data" / "light"
    path = folder / f"light_{variant.name}.onnx"
    beside = path.with_name(f"{path.stem}_output_0.pb")
    if not (path.is_file() and beside.is_file()):
        raise HostLacks(f"the installed onnx {onnx.__version__} has no {path.name}")
    golden = onnx.numpy_helper.to_array(onnx.load_tensor(str(beside)))
    model = onnx.load(path)
    loaded = load_on(target, model)
    feeds = {}
    for info in loaded.inputs:
        value = next(v for v in model.graph.input if v.name == info.name)
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        # What the output beside the network was computed from: a ramp from 0 to 1.
        count = int(np.prod(shape))
        feeds[info.name] = (np.arange(count).reshape(shape) / count).astype(np.float32)
    with explained(target, model):
        (got,) = (array.numpy() for array in loaded.run(feeds).values())
    target.digest(got)
    if got.shape != golden.shape or not np.isfinite(got).all():
        fail(f"the output is {got.dtype}{got.shape}, {np.isfinite(got).sum()} finite elements",
             metric="shape", value=list(got.shape), limit=list(golden.shape))  # fmt: skip
    off = float(np.abs(got.astype(np.float64) - golden).max())
    target.record(metric="relative", value=off / float(np.abs(golden).max()), limit=_NEAR)
    if off > _NEAR * float(np.abs(golden).max()):
        at = int(np.abs(got - golden).argmax())
        fail(f"the output is off by {off:.3g}", metric="relative", limit=_NEAR, index=[at],
             value=off / float(np.abs(golden).max()), expected=float(golden.flat[at]),
             got=float(got.flat[at]))  # fmt: skip
