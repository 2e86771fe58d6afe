# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  rich is imported where something is drawn
"""`chipdock info`: all that is known of a device."""

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import click

from chipdock.cli._command import Command
from chipdock.cli._inventory import DEVICE, open_device
from chipdock.cli._output import big, console, emit_json, json_option, rate, size, table

if TYPE_CHECKING:
    from rich.console import Console

    import chipdock

__all__ = ["info"]

_FOREVER = 2**31 - 1


def _kernels(device: "chipdock.Device") -> list[dict[str, Any]]:
    return [
        {
            "domain": domain,
            "op": op,
            "since_version": since,
            "until_version": until if 0 < until < _FOREVER else None,
            "kernel": name,
        }
        for domain, op, since, until, name in device.kernels()
    ]


def _data(device: "chipdock.Device", with_ops: bool) -> dict[str, Any]:
    plugin = device.plugin
    free, total = device.memory_info()
    return {
        "name": device.name,
        **device.info,
        "memory_free": free,
        "memory_total": total,
        "plugin": {
            "id": plugin.id,
            "version": plugin.version,
            "abi": list(plugin.abi_version),
            "path": plugin.path,
            "notes": list(plugin.notes),
        },
        "slots": dict(plugin.slots),
        "kernel_count": len(device.kernels()),
        "kernels": _kernels(device) if with_ops else None,
    }


def _print_facts(out: "Console", data: dict[str, Any]) -> None:
    plugin, uuid = data["plugin"], data["uuid"]
    facts = {
        "product": data["product"],
        "architecture": data["architecture"],
        "driver": data["driver"],
        "uuid": uuid if uuid.strip("0-") else "",
        "PCI address": data["pci_address"],
        "NUMA node": data["numa_node"] if data["numa_node"] >= 0 else "",
        "units": data["units"] or "",
        "bandwidth": rate(data["memory_bandwidth"]),
        "L2": size(data["l2_bytes"]) if data["l2_bytes"] else "",
        "memory": f"{size(data['memory_free'])} free of {size(data['memory_total'])}",
        "plugin": f"{plugin['id']} {plugin['version']}, ABI {plugin['abi'][0]}.{plugin['abi'][1]}",
        "library": plugin["path"],
        "kernels": data["kernel_count"],
    }
    from rich.text import Text

    out.print(Text(data["name"], "bold"))
    for name, value in facts.items():
        if value != "":
            out.print(Text(f"  {name:<13} {value}"), soft_wrap=True)
    for heap in data["heaps"]:
        flags = [key for key in ("host_visible", "coherent", "addressable") if heap[key]]
        words = [size(heap["bytes"]), f"alignment {heap['alignment']}", *flags]
        out.print(Text(f"  heap          {heap['name']}: {', '.join(words)}"), soft_wrap=True)
    for peak in data["peaks"]:
        out.print(f"  peak          {peak['dtype']}: {big(peak['operations_per_second'])}op/s")


def _print_slots(out: "Console", slots: dict[str, bool]) -> None:
    groups: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for name, offered in slots.items():
        table_name, _, slot = name.partition(".")
        groups[table_name].append((slot, offered))
    shown = table("table", "offered", "not offered", fold=("offered", "not offered"))
    for name, entries in groups.items():
        yes = " ".join(slot for slot, offered in entries if offered)
        no = " ".join(slot for slot, offered in entries if not offered)
        shown.add_row(name, yes, no)
    out.print(shown)


def _opsets(kernel: dict[str, Any]) -> str:
    since, until = kernel["since_version"], kernel["until_version"]
    return f"{since}+" if until is None else f"{since}-{until}"


def _print_kernels(out: "Console", kernels: list[dict[str, Any]]) -> None:
    by_op: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for kernel in kernels:
        domain = f"{kernel['domain']}." if kernel["domain"] else ""
        by_op[domain + kernel["op"]].append(kernel)
    shown = table("operator", "opsets", "kernels", fold=("opsets", "kernels"))
    for op, entries in sorted(by_op.items()):
        spans = {_opsets(k): None for k in sorted(entries, key=lambda k: int(k["since_version"]))}
        names = dict.fromkeys(k["kernel"] for k in entries)
        shown.add_row(op, " ".join(spans), " ".join(names))
    out.print(shown)
    out.print(f"{len(by_op)} operators, {len(kernels)} kernels")


@click.command(cls=Command)
@click.argument("device", type=DEVICE, default="cpu:0")
@click.option("--ops", is_flag=True, help="List the operators that it has kernels for.")
@json_option
def info(device: str, ops: bool, as_json: bool) -> None:
    """Show what is known of DEVICE (cpu:0)."""
    data = _data(open_device(device), ops)
    if as_json:
        emit_json("info", {"device": data})
        return
    out = console()
    _print_facts(out, data)
    out.print()
    if ops:
        _print_kernels(out, data["kernels"])
    else:
        _print_slots(out, data["slots"])
