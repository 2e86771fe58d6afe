# SPDX-License-Identifier: Apache-2.0
"""Checks that the ABI headers say all they have to, in one form.

`python tests/lint/check_headers.py` prints findings as `file: where: what` and exits with 1 if
there are any. Layouts are left to tests/abi, spelling of code to clang-format.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from c_headers import (
    INCLUDE,
    ROOT,
    Header,
    Slot,
    Struct,
    comment_share,
    load_all,
    references,
    strip_comments,
)

LABELS = ("Ownership", "Threading", "Blocking", "Errors", "Since")
REQUIRED = {
    "chipdock_device_api": {"count", "info", "open", "close"},
    "chipdock_memory_api": {"alloc", "free", "copy"},
}
STABLE = ("device", "memory", "stream", "event", "kernel")
UNSTABLE = ("graph", "compile", "ccl", "profiler")
PREFIXES = {
    "base.h": "BASE", "plugin.h": "PLG", "device.h": "DEV", "memory.h": "MEM", "stream.h": "STR",
    "event.h": "EVT", "kernel.h": "KRN", "graph.h": "GRA", "compile.h": "CMP", "ccl.h": "CCL",
    "profiler.h": "PRF", "host_base.h": "HST", "host_device.h": "HDV", "host_tensor.h": "HTN",
    "host_stream.h": "HSM", "host_graph.h": "HGR", "host_plan.h": "HPL",
}  # fmt: skip
# Value types whose layout never grows: they stand inside structs that do.
FIXED_STRUCTS = {"chipdock_dtype"}
WORDS = {
    "const", "void", "char", "double", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t",
    "uint16_t", "uint32_t", "uint64_t",
}  # fmt: skip
SLOTS = ROOT / "device_api" / "runtime" / "slots.inc"
UMBRELLAS = {"chipdock.h", "host.h"}


def bad_words(ctype: str) -> list[str]:
    """Returns the words of a C type that may not cross: int, long, size_t, bool, enum, …."""
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[\w+\]", "", ctype))
    return [word for word in words if word not in WORDS and not word.startswith("chipdock_")]


def _labels(doc: tuple[str, ...]) -> list[str]:
    words = [m.group(1) for line in doc if (m := re.match(r"(\w+): ", line))]
    return [word for word in words if word in LABELS]


def _label_text(doc: tuple[str, ...], label: str) -> str:
    text = "\n".join(doc)
    match = re.search(rf"^{label}: +(.*?)(?=^\w+: |\Z)", text, re.MULTILINE | re.DOTALL)
    return " ".join(match.group(1).split()) if match else ""


def check_slot(slot: Slot) -> Iterator[str]:
    """Yields what the doc block of a slot lacks."""
    doc = [line for line in slot.doc if line.strip()]
    if not doc or doc[0].startswith(("@", *LABELS)):
        yield "no summary sentence"
    elif not re.search(r"[.\]]( |$)", " ".join(doc)):
        yield "the summary is no sentence"
    labels = _labels(slot.doc)
    if labels != list(LABELS):
        yield f"labels are {labels}, expected {list(LABELS)} in this order"
    documented = [m.group(1) for line in slot.doc if (m := re.match(r"@param (\w+) +\S", line))]
    names = [parameter.name for parameter in slot.parameters]
    if documented != names:
        yield f"documents parameters {documented}, has {names}"
    for parameter in slot.parameters:
        if bad := bad_words(parameter.type):
            yield f"parameter {parameter.name} has type {parameter.type}: {bad} may not cross"
    if bad := bad_words(slot.result):
        yield f"returns {slot.result}: {bad} may not cross"


def check_table_slot(table: Struct, slot: Slot) -> Iterator[str]:
    """Yields where a slot of a table differs from what every slot looks like."""
    if slot.result != "chipdock_status":
        yield f"returns {slot.result}, expected chipdock_status"
    if not slot.parameters or slot.parameters[-1].type != "chipdock_error*":
        yield "the last parameter is not chipdock_error* error"
    name = table.name.removeprefix("chipdock_").removesuffix("_api")
    counter = "ABI" if name in STABLE else name
    since = _label_text(slot.doc, "Since")
    match = re.match(r"(\w+ \d+\.\d+), (required|optional)\b(.*)", since)
    if match is None:
        yield f"Since is {since!r}, expected 'ABI x.y, required' or 'ABI x.y, optional: default'"
        return
    if not match.group(1).startswith(f"{counter} "):
        yield f"Since counts in {match.group(1)!r}, expected a version of {counter!r}"
    wanted = slot.name in REQUIRED.get(table.name, set())
    if (match.group(2) == "required") != wanted:
        yield f"says {match.group(2)}; the seven required slots are {REQUIRED}"
    if not wanted and not re.match(r": \S", match.group(3)):
        yield "an optional slot says behind a colon what NULL means"


def check_function(function: Slot, version: str) -> Iterator[str]:
    """Yields where a function of the library differs from what every one looks like."""
    if not function.name.startswith("chipdock_host_"):
        yield "lacks the prefix chipdock_host_"
    gone = function.name.endswith(("_destroy", "_close"))
    if gone and function.result != "void":
        yield f"returns {function.result}; what ends a handle cannot fail"
    if function.result == "chipdock_status":
        last = function.parameters[-1].type if function.parameters else ""
        if last != "chipdock_error*":
            yield "the last parameter is not chipdock_error* error"
    since = re.match(r"host (\d+)\.(\d+)\.$", _label_text(function.doc, "Since"))
    known = tuple(int(part) for part in version.split("."))
    if since is None or tuple(int(part) for part in since.groups()) > known:
        given = _label_text(function.doc, "Since")
        yield f"Since is {given!r}, expected 'host x.y.', {version} at most"


def check_functions(header: Header) -> Iterator[str]:
    """Yields the findings of the functions that a header declares."""
    for function in header.functions:
        for finding in (*check_slot(function), *check_function(function, host_version())):
            yield f"{function.name}: {finding}"
    if header.functions and not header.name.startswith("host"):
        yield "declares functions of the library; those stand in host*.h"


def check_struct(struct: Struct) -> Iterator[str]:
    """Yields where a struct could not grow or crosses with a type of unsure size."""
    if struct.name not in FIXED_STRUCTS:
        first = struct.fields[0] if struct.fields else ("", "")
        if struct.is_table and first != ("chipdock_table_header", "header"):
            yield f"a table starts with chipdock_table_header header, not {first}"
        if not struct.is_table and first != ("uint32_t", "struct_size"):
            yield f"starts with {first}, expected uint32_t struct_size [BASE-1]"
    for ctype, name in struct.fields:
        if bad := bad_words(ctype):
            yield f"field {name} has type {ctype}: {bad} may not cross"
        if name.startswith("reserved"):
            yield f"field {name}: structs grow at the end, nothing is reserved"


def check_names(header: Header) -> Iterator[str]:
    """Yields names outside of the prefix, varargs, and enums that are more than constants."""
    code = strip_comments(header.text)
    for match in re.finditer(r"^#define (\w+)", code, re.MULTILINE):
        if not match.group(1).startswith("CHIPDOCK_"):
            yield f"macro {match.group(1)} lacks the prefix CHIPDOCK_"
    for match in re.finditer(r"(?:\}|typedef struct \w+) (\w+);", code):
        if not match.group(1).startswith("chipdock_"):
            yield f"type {match.group(1)} lacks the prefix chipdock_"
    for match in re.finditer(r"\benum\b(?P<tail>\s*\w*\s*)(?P<open>\{?)(?P<body>[^}]*)", code):
        if match["tail"].strip() or not match["open"]:
            yield "an enum with a name: enums cross as int32_t, constants stand in an unnamed one"
        for name in re.findall(r"^\s*(\w+)\s*(?:=|,|$)", match["body"], re.MULTILINE):
            if not name.startswith("CHIPDOCK_"):
                yield f"constant {name} lacks the prefix CHIPDOCK_"
        for entry in match["body"].split(","):
            if entry.strip() and "=" not in entry:
                yield f"constant {entry.strip()} has no written value"
    if "..." in code:
        yield "varargs do not cross"


def check_header(header: Header) -> Iterator[str]:
    """Yields the findings of one header."""
    if not header.text.startswith("/* SPDX-License-Identifier: Apache-2.0 */\n"):
        yield "the first line is not the SPDX line"
    guard = f"CHIPDOCK_{header.name.removesuffix('.h').upper()}_H_"
    if f"#ifndef {guard}\n#define {guard}\n" not in header.text:
        yield f"the include guard is not {guard}"
    if header.name not in UMBRELLAS and comment_share(header.text) < 0.5:
        yield f"{comment_share(header.text):.0%} of the lines carry comment, at least 50% should"
    yield from check_names(header)
    yield from check_functions(header)
    for struct in header.structs:
        for finding in check_struct(struct):
            yield f"{struct.name}: {finding}"
        for slot in struct.slots:
            # Call-backs that the host hands in are described where they stand.
            if struct.is_table or struct.name in {"chipdock_plugin", "chipdock_host"}:
                for finding in check_slot(slot):
                    yield f"{struct.name}.{slot.name}: {finding}"
            if struct.is_table:
                for finding in check_table_slot(struct, slot):
                    yield f"{struct.name}.{slot.name}: {finding}"
    yield from check_table(header)


def host_version() -> str:
    """Returns "major.minor" of the embedding interface, "0.0" if it states none."""
    text = (INCLUDE / "host_base.h").read_text(encoding="utf-8")
    parts = [re.search(rf"#define CHIPDOCK_HOST_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
    return ".".join(match.group(1) if match else "0" for match in parts)


def check_table(header: Header) -> Iterator[str]:
    """Yields what a header with a table lacks: its version, the macro that hides it."""
    name = header.name.removesuffix(".h")
    if name not in STABLE + UNSTABLE:
        return
    tables = [struct.name for struct in header.structs if struct.is_table]
    if tables != [f"chipdock_{name}_api"]:
        yield f"defines tables {tables}, expected chipdock_{name}_api"
    major = re.search(rf"#define CHIPDOCK_{name.upper()}_MAJOR (\d+)", header.text)
    minor = re.search(rf"#define CHIPDOCK_{name.upper()}_MINOR (\d+)", header.text)
    if major is None or minor is None:
        yield "the version macros are missing"
    elif (name in STABLE) != (int(major.group(1)) >= 1):
        yield f"major {major.group(1)} does not fit: {STABLE} are 1.x, {UNSTABLE} are 0.x"
    if name in UNSTABLE and "#if defined(CHIPDOCK_UNSTABLE)" not in header.text:
        yield "a 0.x table stands inside #if defined(CHIPDOCK_UNSTABLE)"


def check_duties(headers: list[Header]) -> Iterator[str]:
    """Yields duties that are numbered twice, out of order, unused, or used but not defined."""
    owner: dict[str, str] = {}
    for header in headers:
        numbers = []
        for duty, _ in header.duties:
            if duty in owner:
                yield f"{header.name}: {duty} is defined in {owner[duty]} too"
            owner[duty] = header.name
            prefix, number = duty.split("-")
            numbers.append(int(number))
            if prefix != PREFIXES.get(header.name):
                yield f"{header.name}: {duty} should start with {PREFIXES.get(header.name)}"
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"{header.name}: duties are numbered {numbers}"
    used: dict[str, str] = {}
    for header in headers:
        for duty in references(header.rest):
            used[duty] = header.name
        for duty in references(header.text) - owner.keys():
            if duty.split("-")[0] in PREFIXES.values():
                yield f"{header.name}: {duty} is used but defined nowhere"
    for duty, name in owner.items():
        if duty not in used:
            yield f"{name}: {duty} is named by no slot, field or macro"


def check_slot_list(headers: list[Header], text: str) -> Iterator[str]:
    """Yields where the runtime's list of slots is not that of the headers, in their order."""
    listed = re.findall(r"^CHIPDOCK_SLOT\((\w+), (\w+), (k\w+)\)$", text, re.MULTILINE)
    if len(listed) != len(re.findall(r"^CHIPDOCK_SLOT", text, re.MULTILINE)):
        yield f"{SLOTS.name}: a line is not CHIPDOCK_SLOT(table, slot, need)"
    for header in headers:
        for struct in header.structs:
            if struct.is_table:
                table = struct.name.removeprefix("chipdock_").removesuffix("_api")
                required = REQUIRED.get(struct.name, set())
                wanted = [
                    (table, slot.name, "kRequired" if slot.name in required else "kOptional")
                    for slot in struct.slots
                ]
                have = [entry for entry in listed if entry[0] == table]
                if have != wanted:
                    wrong = sorted(set(have) ^ set(wanted)) or "order"
                    yield f"{SLOTS.name}: differs from {header.name} in {wrong}"


def check(headers: list[Header]) -> list[str]:
    """Returns all findings over a set of headers."""
    findings = [f"{header.name}: {text}" for header in headers for text in check_header(header)]
    return findings + list(check_duties(headers))


def main() -> int:
    """Prints the findings; returns the exit code."""
    headers = load_all()
    findings = check(headers)
    findings += check_slot_list(headers, SLOTS.read_text(encoding="utf-8"))
    sys.stdout.write("".join(f"{finding}\n" for finding in findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
