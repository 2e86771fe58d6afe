# SPDX-License-Identifier: Apache-2.0
"""`chipdock explain`: where each node would run and why, and the memory that a run takes."""

from typing import Any

import click

from chipdock.cli._command import Command
from chipdock.cli._output import console, emit_json, json_option, size
from chipdock.cli._run import input_options, print_places
from chipdock.cli._source import find_model, load_model, model_argument, placement_options

__all__ = ["explain"]


@click.command(cls=Command)
@model_argument
@placement_options
@input_options
@click.option("--memory", is_flag=True, help="Also the memory of a run with these inputs.")
@click.option("-v", "--verbose", count=True, help="Say why each node runs where it does.")
@json_option
def explain(memory: bool, verbose: int, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Say where each node of MODEL would run."""
    from chipdock.cli import _measure  # noqa: PLC0415  with numpy
    from chipdock.cli._feeds import make_feeds  # noqa: PLC0415

    source = find_model(options["model"])
    loaded, load_ms = load_model(source, options["device"], options["fallback"], options["threads"])
    counts, nodes = _measure.placement_data(loaded)
    data: dict[str, Any] = {
        "model": source.name,
        "path": str(source.path),
        "device": loaded.device.name,
        "fallback": options["fallback"],
        "load_ms": load_ms,
        "placement": counts,
        "nodes": nodes,
        "memory": None,
        "notes": [],
    }
    if memory:
        feed = make_feeds(source, loaded, options["inputs"], options["shape"])[0]
        shapes = {name: list(array.shape) for name, array in feed.arrays.items()}
        found = loaded.memory(shapes)
        padding = found["activation_bytes"] - found["activation_lower_bound"]
        data["memory"] = {"shapes": shapes, **found, "padding_bytes": padding}
        data["notes"] = list(feed.notes)
    if as_json:
        emit_json("explain", data)
        return
    out = console()
    out.print(f"[bold]{source.name}[/] on {data['device']}")
    print_places(out, data, verbose + 1)
    if data["memory"] is not None:
        out.print()
        _print_memory(data)


def _print_memory(data: dict[str, Any]) -> None:
    out = console()
    found = data["memory"]
    for name, shape in found["shapes"].items():
        text = "x".join(map(str, shape)) or "scalar"
        out.print(f"memory for {name}: {text}", markup=False)
    for note in data["notes"]:
        out.print(f"note: {note}", markup=False)
    least = found["activation_lower_bound"]
    ratio = f": {found['activation_bytes'] / least:.2f} times the least" if least else ""
    out.print(f"  weights      {size(found['weight_bytes'])}")
    out.print(f"  activations  {size(found['activation_bytes'])} with shared storage{ratio}")
    out.print(f"    least      {size(least)}, the largest sum of those that are needed at once")
    if found["layout_padding_bytes"]:
        out.print(f"    layouts    {size(found['layout_padding_bytes'])} of it pad private layouts")
    out.print(f"    padding    {size(found['padding_bytes'])}, alignment and gaps between them")
    out.print(f"  workspace    {size(found['workspace_bytes'])}, of the step that takes most")
    out.print(f"  arena        {size(found['arena_bytes'])} in one block, {found['steps']} steps")
