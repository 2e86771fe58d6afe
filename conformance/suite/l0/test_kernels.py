# SPDX-License-Identifier: Apache-2.0
"""The kernels that a plugin lists: descriptors well formed, one property a case."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.l0.test_device import _BITS
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_NEEDS = "slot:kernel.list"
_MOST_ARGUMENTS = 64


def _list(device: RawDevice) -> tuple[Any, int]:
    out, count = device.block("const chipdock_kernel*const**"), device.block("uint64_t*")
    device.ok("kernel.list", device.device, out, count)
    return out[0], int(count[0])


def _kernels(device: RawDevice) -> list[Any]:
    array, count = _list(device)
    return [array[i] for i in range(count)]


def _named(device: RawDevice, kernel: Any) -> str:
    return f"kernel {device.text(kernel.name)!r} of {device.text(kernel.op)!r}"


def _dtype_rules(device: RawDevice, kernel: Any) -> None:
    seen = set()
    for i in range(kernel.dtype_rule_count):
        rule = kernel.dtype_rules[i]
        assert rule != device.null
        assert rule.struct_size >= 24
        assert rule.flags == 0
        assert -_MOST_ARGUMENTS <= rule.argument < _MOST_ARGUMENTS
        assert rule.argument not in seen, f"two rules for argument {rule.argument}"
        seen.add(rule.argument)
        kinds = [rule.dtypes[k] for k in range(rule.count)]
        assert kinds, f"no dtype for argument {rule.argument}"
        for kind in kinds:
            assert kind.bits in _BITS.get(kind.code, ()), f"dtype ({kind.code}, {kind.bits})"
            assert kind.lanes == 1
        triples = [(k.code, k.bits) for k in kinds]
        assert len(set(triples)) == len(triples), "a dtype is listed twice"


def _arity(device: RawDevice, kernel: Any) -> tuple[int, int]:
    """Most inputs and outputs of the kernel's operator, as ONNX has it if it does."""
    from onnx import defs  # noqa: PLC0415  no other case of this level needs it

    op, domain = device.text(kernel.op), device.text(kernel.domain)
    if not defs.has(op, max_inclusive_version=kernel.since_version, domain=domain):
        return _MOST_ARGUMENTS, _MOST_ARGUMENTS
    schema = defs.get_schema(op, max_inclusive_version=kernel.since_version, domain=domain)
    return min(schema.max_input, _MOST_ARGUMENTS), min(schema.max_output, _MOST_ARGUMENTS)


def _aliases(device: RawDevice, kernel: Any) -> None:
    for i in range(kernel.alias_count):
        alias, (inputs, outputs) = kernel.aliases[i], _arity(device, kernel)
        assert alias.struct_size >= 12
        assert alias.input < inputs, "an alias of an input that the operator has not"
        assert alias.output < outputs, "an alias of an output that the operator has not"
        assert not kernel.host_outputs >> alias.output & 1, "a host output takes no device memory"


def _layout_rules(device: RawDevice, kernel: Any) -> None:
    seen: set[int] = set()
    for i in range(kernel.layout_rule_count):
        rule = kernel.layout_rules[i]
        assert rule != device.null
        assert rule.struct_size >= 24
        assert rule.flags == 0
        assert -_MOST_ARGUMENTS <= rule.argument < _MOST_ARGUMENTS
        assert rule.argument not in seen, f"two rules for argument {rule.argument}"
        seen.add(rule.argument)
        # No layout at all is a rule too: it ends the one before it, which serves what follows.
        layouts = [rule.layouts[k] for k in range(rule.count)]
        assert 0 not in layouts, "layout 0 goes without saying"
        assert len(set(layouts)) == len(layouts), "a layout is listed twice"
        assert device.offers("kernel.layout_size"), "layouts without layout_size"


def _versions(device: RawDevice, kernel: Any) -> None:
    assert kernel.since_version >= 1
    assert kernel.until_version == 0 or kernel.until_version >= kernel.since_version


def _strings(device: RawDevice, kernel: Any) -> None:
    for field in ("name", "domain", "op"):
        assert getattr(kernel, field) != device.null, f"{field} is NULL"
        assert device.text(getattr(kernel, field)).isascii()
    assert device.text(kernel.name), "it has no name"
    assert device.text(kernel.op), "it has no operator"


def _size(device: RawDevice, kernel: Any) -> None:
    assert kernel.struct_size >= device.ffi.sizeof("chipdock_kernel")


def _flags(device: RawDevice, kernel: Any) -> None:
    assert kernel.flags & ~15 == 0, f"unknown flags {kernel.flags:#x}"
    assert kernel.flags & 3 != 3, "what waits for its stream cannot be captured"


def _alignment(device: RawDevice, kernel: Any) -> None:
    assert kernel.min_alignment & (kernel.min_alignment - 1) == 0


def _domain(device: RawDevice, kernel: Any) -> None:
    assert device.text(kernel.domain) != "ai.onnx", 'the default domain is written ""'


_CHECKS = {
    "struct_size": _size, "flags": _flags, "strings": _strings, "domain": _domain,
    "versions": _versions, "dtype_rules": _dtype_rules, "layout_rules": _layout_rules,
    "aliases": _aliases, "alignment": _alignment,
}  # fmt: skip


@case(
    "L0.kernel.descriptor",
    duties=("KRN-1", "BASE-6", "BASE-11"),
    needs=_NEEDS,
    entry_points=("kernel.list",),
    variants=[Variant(name=name, revision=2 if name == "layout_rules" else 1) for name in _CHECKS],
)
def test_descriptor(target: Target, variant: Variant) -> None:
    """One property of every listed kernel is as the header says."""
    with RawDevice(target) as device:
        for kernel in _kernels(device):
            assert kernel != device.null
            try:
                _CHECKS[variant.name](device, kernel)
            except AssertionError as error:
                raise AssertionError(f"{_named(device, kernel)}: {error}") from error


@case(
    "L0.kernel.list",
    duties=("KRN-1",),
    needs=_NEEDS,
    entry_points=("kernel.list",),
    variants=named("same_array two_devices unchanged"),
)
def test_list_stays(target: Target, variant: Variant) -> None:
    """The list and its descriptors are the same each time while the device is open."""
    with RawDevice(target) as device:
        array, count = _list(device)
        before = [bytes(device.ffi.buffer(array[i])) for i in range(count)]
        if variant.name == "two_devices":
            second = device.open()
            out, more = device.block("const chipdock_kernel*const**"), device.block("uint64_t*")
            device.ok("kernel.list", second, out, more)
            assert more[0] == count, "two openings of one chip list different kernels"
        again, same = _list(device)
        assert same == count
        if variant.name == "same_array":
            assert count == 0 or again == array
        assert [bytes(device.ffi.buffer(array[i])) for i in range(count)] == before
