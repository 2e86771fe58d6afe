# SPDX-License-Identifier: Apache-2.0
"""executor: what a node costs beside its work, in a chain of tiny Adds and Muls."""

import numpy as np
from onnx import ModelProto, TensorProto, helper

import chipdock
from bench import peers
from bench.harness import Result, Samples, Settings, compare, in_turns

AIM = 0.5


def chain(nodes: int, count: int) -> ModelProto:
    """Return y = ((x + x) * x + x) * x …: nothing in it is constant, nothing is the same twice."""
    names = ["x", *(f"v{i + 1}" for i in range(nodes))]
    steps = [
        helper.make_node("Mul" if i % 2 else "Add", [names[i], "x"], [names[i + 1]])
        for i in range(nodes)
    ]
    value = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [count])
        for name in ("x", f"v{nodes}")
    ]
    graph = helper.make_graph(steps, "chain", value[:1], value[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def run_executor(settings: Settings) -> list[Result]:
    """Return the time per node against onnxruntime, without and with its graph optimisations."""
    nodes = 20 if settings.quick else 1000
    model = chain(nodes, 6)
    x = np.full(6, 0.5, np.float32)  # the chain stays finite
    data = model.SerializeToString()
    ours = chipdock.load(data, threads=1)
    a = chipdock.array(x)
    runners = {"chipdock": lambda: ours.run({"x": a})}
    plain, optimised = peers.session(data, 1, optimised=False), peers.session(data, 1)
    if plain is not None and optimised is not None:
        runners["onnxruntime, no optimisations"] = lambda: plain.run(None, {"x": x})
        runners["onnxruntime"] = lambda: optimised.run(None, {"x": x})
        (want,), got = plain.run(None, {"x": x}), ours.run({"x": a})[f"v{nodes}"].numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5)
    samples = in_turns(runners, settings)
    per_node = Samples(
        {name: [t / nodes for t in times] for name, times in samples.seconds.items()}, samples.calls
    )
    case = f"a node of {nodes}, 6 elements each"
    aims = {"onnxruntime, no optimisations": AIM, "onnxruntime": AIM}
    found = compare("executor", case, per_node, "ns", aims=aims)
    return found or [Result("executor", case, "onnxruntime", cause="onnxruntime is not installed")]
