# SPDX-License-Identifier: Apache-2.0
"""Takes the layout of every struct and the value of every constant from a C compiler.

`python tests/abi/layout.py` compares with the golden of the current ABI version and prints what
differs; with `--write` it renews that golden, which is right only before the version is released.
The golden of a released version is never written again: raise CHIPDOCK_ABI_MINOR and add one.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INCLUDE = ROOT / "device_api" / "include"
GOLDENS = HERE / "goldens"
sys.path.insert(0, str(ROOT / "tests" / "lint"))

import c_headers  # noqa: E402  # found by the line above

Layout = dict[str, Any]
STABLE_HEADERS = (
    "base.h", "plugin.h", "device.h", "memory.h", "stream.h", "event.h", "kernel.h",
)  # fmt: skip
UNSTABLE_HEADERS = ("graph.h", "compile.h", "ccl.h", "profiler.h")
# The embedders' interface has a version and so a golden of its own.
HOST_HEADERS = (
    "host_base.h", "host_device.h", "host_tensor.h", "host_stream.h", "host_graph.h", "host_plan.h",
)  # fmt: skip
SETS = {
    "ABI": (STABLE_HEADERS + UNSTABLE_HEADERS, "chipdock.h"),
    "HOST": (HOST_HEADERS, "host.h"),
}


def constant_names(text: str) -> list[str]:
    """Returns the enum constants and the plain number macros of a header, in order."""
    code = c_headers.strip_comments(text)
    names = []
    for match in re.finditer(r"^enum \{([^}]*)\}", code, re.MULTILINE):
        names += re.findall(r"(\w+)\s*=", match.group(1))
    return names + re.findall(r"^#define (CHIPDOCK_\w+) +\d+ *$", code, re.MULTILINE)


def program(include: Path, of: str) -> str:
    """Returns a C program that prints the layout of a set of headers as JSON."""
    prints, values = [], []
    headers, umbrella = SETS[of]
    for name in headers:
        header = c_headers.parse(name, (include / "chipdock" / name).read_text(encoding="utf-8"))
        for struct in header.structs:
            # Function pointers among the fields count as well; order is that of the text.
            body = re.search(
                rf"struct {struct.name} \{{\n(.*?)\n\}}(?: {struct.name})?;", header.text, re.DOTALL
            )
            code = c_headers.strip_comments(body.group(1)) if body else ""
            fields = re.findall(r"(?:CHIPDOCK_CALL\*\s*(\w+)\)\([^;]*|(\w+)(?:\[\w+\])*)\s*;", code)
            prints.append(f'  BEGIN("{struct.name}", {struct.name}, "{name}")')
            prints += [f"  FIELD({struct.name}, {slot or plain})" for slot, plain in fields]
            prints.append("  END")
        values += [f"  VALUE({constant})" for constant in constant_names(header.text)]
    lines = "\n".join([*prints, '  printf("}, \\"constants\\": {"); first = 1;', *values])
    return f"""
#define CHIPDOCK_UNSTABLE 1
#include <stdio.h>
#include "chipdock/{umbrella}"
#define BEGIN(name, type, header) \\
  printf("%s\\"%s\\": {{\\"header\\": \\"%s\\", \\"size\\": %d, \\"fields\\": {{", \\
         first ? "" : ",", name, header, (int)sizeof(type)); inner = 1; first = 0;
#define FIELD(type, field) \\
  printf("%s\\"%s\\": [%d, %d]", inner ? "" : ",", #field, (int)offsetof(type, field), \\
         (int)sizeof(((type*)0)->field)); inner = 0;
#define END printf("}}}}");
#define VALUE(name) printf("%s\\"%s\\": %ld", first ? "" : ",", #name, (long)(name)); first = 0;
int main(void) {{
  int first = 1, inner = 1;
  printf("{{\\"structs\\": {{");
{lines}
  printf("}}}}\\n");
  return 0;
}}
"""


def take(cc: str, include: Path = INCLUDE, flags: tuple[str, ...] = (), of: str = "ABI") -> Layout:
    """Compiles and runs the program; returns {"structs": {...}, "constants": {...}}.

    Args:
        cc: The compiler.
        include: Holds `chipdock/`.
        flags: More flags for the compiler.
        of: Which of SETS.

    Raises:
        subprocess.CalledProcessError: The compiler or the program failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "layout.c", Path(folder) / "layout"
        source.write_text(program(include, of), encoding="utf-8")
        command = [cc, "-std=c99", *flags, f"-I{include}", str(source), "-o", str(binary)]
        subprocess.run(command, check=True)
        text = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    layout: Layout = json.loads(text)
    return layout


def version(layout: Layout, name: str = "ABI") -> str:
    """Returns "major.minor" of the base or of a table."""
    constants = layout["constants"]
    return f"{constants[f'CHIPDOCK_{name}_MAJOR']}.{constants[f'CHIPDOCK_{name}_MINOR']}"


def golden_path(layout: Layout, of: str = "ABI") -> Path:
    """Returns where the golden of this layout's version lies."""
    return GOLDENS / f"{of.lower()}-{version(layout, of)}.json"


def differences(old: Layout, new: Layout) -> list[str]:
    """Returns how `new` breaks code that was compiled against `old`: what moved, shrank or is gone.

    Structs of unstable tables are compared only if the table's version is the same in both.
    """
    found = []
    for name, struct in old["structs"].items():
        table = struct["header"].removesuffix(".h").upper()
        unstable = struct["header"] in UNSTABLE_HEADERS
        if unstable and version(old, table) != version(new, table):
            continue
        other = new["structs"].get(name)
        if other is None:
            found.append(f"{name} is gone")
            continue
        for field, place in struct["fields"].items():
            if other["fields"].get(field) != place:
                found.append(f"{name}.{field} was at {place}, is at {other['fields'].get(field)}")
        for field, (offset, _) in other["fields"].items():
            if field not in struct["fields"] and offset < struct["size"]:
                found.append(
                    f"{name}.{field} is new at {offset}, inside the old size {struct['size']}"
                )
    for name, value in old["constants"].items():
        if re.search(r"_(MAJOR|MINOR)$", name):
            continue
        if new["constants"].get(name) != value:
            found.append(f"{name} was {value}, is {new['constants'].get(name)}")
    return found


def dump(layout: Layout) -> str:
    """Returns the golden's text: one line a field, so that a change reads well in a diff."""
    text = json.dumps(layout, indent=1)
    return re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", text) + "\n"


def main() -> int:
    """Compares or writes; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    changed = False
    for of in SETS:
        layout = take(arguments.cc, of=of)
        path = golden_path(layout, of)
        if arguments.write:
            path.write_text(dump(layout), encoding="utf-8")
            continue
        old = json.loads(path.read_text(encoding="utf-8"))
        sys.stdout.write("".join(f"{line}\n" for line in differences(old, layout)))
        changed = changed or old != layout
    return int(changed)


if __name__ == "__main__":
    sys.exit(main())
