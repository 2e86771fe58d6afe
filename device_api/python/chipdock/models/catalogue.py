# SPDX-License-Identifier: Apache-2.0
"""The list of real models, read from catalogue.toml beside this file.

Says what a file is called, where it is published and which bytes it must hold. Getting the file is
left to fetch.py, and what to feed a model to tasks.py.
"""

import difflib
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

__all__ = ["Entry", "asset", "assets", "entries", "entry"]


@dataclass(frozen=True)
class Entry:
    """One file of the catalogue: a model, or a data file that inputs are made of.

    Attributes:
        name: Name used on the command line and in reports.
        sha256: Lower-case hex digest of `member`, or of `filename` when there is no package.
        licence: SPDX expression or the words of the publisher.
        domain: What the model is for, in a few words.
        package: Distribution on the Python package index, "" when it is not published there.
        version: Exact version of `package`.
        member: Path inside the wheel.
        filename: Name of the plain file that is looked for in CHIPDOCK_MODEL_PATH.
        wheels: Digest of each wheel that is the same on all platforms, by file name.
        convert: Name of the converter when `member` is no ONNX file, else "".
        converted: Digest of a known conversion, accepted in CHIPDOCK_MODEL_PATH, else "".
        first: Part of the set that every run of the demo shows.
    """

    name: str
    sha256: str
    licence: str
    domain: str
    package: str = ""
    version: str = ""
    member: str = ""
    filename: str = ""
    wheels: dict[str, str] = field(default_factory=dict, hash=False)
    convert: str = ""
    converted: str = ""
    first: bool = False

    @property
    def file(self) -> str:
        """Name of the plain file: `filename`, or the last part of `member`."""
        return self.filename or self.member.rpartition("/")[2]

    @property
    def requirement(self) -> str:
        """The pinned requirement, such as "rapidocr==3.10.0"; "" when not published."""
        return f"{self.package}=={self.version}" if self.package else ""


@cache
def _tables() -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    text = resources.files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return (
        tuple(Entry(**item) for item in data["model"]),
        tuple(Entry(**item) for item in data["asset"]),
    )


def entries(*, first_only: bool = False) -> tuple[Entry, ...]:
    """Return the models in catalogue order, or only those of the first set."""
    return tuple(item for item in _tables()[0] if item.first or not first_only)


def assets() -> tuple[Entry, ...]:
    """Return the data files that inputs are made of."""
    return _tables()[1]


def _find(name: str, among: tuple[Entry, ...], what: str) -> Entry:
    for item in among:
        if item.name == name:
            return item
    names = [item.name for item in among]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}" if close else f"known are {', '.join(names)}"
    raise KeyError(f"INVALID_ARGUMENT: no {what} is called {name!r}; {hint}")


def entry(name: str) -> Entry:
    """Return the model called `name`.

    Raises:
        KeyError: No model has that name; the text names the closest one.
    """
    return _find(name, entries(), "model")


def asset(name: str) -> Entry:
    """Return the data file called `name`.

    Raises:
        KeyError: No data file has that name.
    """
    return _find(name, assets(), "data file")
