# SPDX-License-Identifier: Apache-2.0
"""What a model is fed: meaningful inputs for models of the catalogue, else what the user says.

Knows nothing of devices; it makes numpy arrays that fit what the model declares.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from chipdock.cli._command import Failure, did_you_mean
from chipdock.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from chipdock._lower import ValueInfo
    from chipdock.cli._source import Source
    from chipdock.model import Model

__all__ = ["Feed", "make_feeds"]

_SEED = 0
_MOST_ELEMENTS = 2**40
_SHAPE = re.compile(r"\d+([,x]\d+)*|scalar")

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Feed:
    """Inputs of one run.

    Attributes:
        name: Of the catalogue's case, or "given".
        arrays: By input name.
        decode: Reads the answer out of the outputs, None when the inputs mean nothing.
        expected: The right answer.
        notes: What was assumed.
    """

    name: str
    arrays: Arrays
    decode: Callable[[Mapping[str, NDArray[Any]]], str] | None = None
    expected: str = ""
    notes: tuple[str, ...] = field(default=())


def _bad(text: str) -> Failure:
    return Failure(f"INVALID_ARGUMENT: {text}", ExitCode.USAGE)


def _parse_shape(text: str, option: str) -> tuple[int, ...]:
    if not _SHAPE.fullmatch(text):
        raise _bad(f"{option} wants a shape such as 1,3,224,224 or scalar, got {text!r}")
    shape = () if text == "scalar" else tuple(int(part) for part in re.split("[,x]", text))
    if math.prod(shape) > _MOST_ELEMENTS:
        raise _bad(f"{option} gives {text!r}, a shape of more than 2^40 elements")
    return shape


def _split(texts: Sequence[str], option: str, model: "Model") -> dict[str, str]:
    """Return what was given by input name; a model with one input needs no name.

    One with several inputs, all but one of which have defaults, needs none for that one either.
    """
    needed = [info.name for info in model.inputs]
    names = needed + [info.name for info in model.defaults]
    found: dict[str, str] = {}
    for text in texts:
        # Input names may hold "=": the longest name that fits wins.
        name = max((n for n in names if text.startswith(f"{n}=")), key=len, default=None)
        if name is not None:
            found[name] = text[len(name) + 1 :]
        elif "=" not in text and len(needed or names) == 1:
            found[(needed or names)[0]] = text
        else:
            wrong = text.partition("=")[0]
            hint = did_you_mean(wrong, names)
            raise _bad(f"{option} names no input of the model: {wrong!r}{hint}")
    return found


def _shape_of(
    info: "ValueInfo", shape: tuple[int, ...] | None, notes: list[str]
) -> tuple[int, ...]:
    if shape is not None:
        return shape
    if info.shape is None:
        raise _bad(f"input {info.name!r} has any rank; say --shape {info.name}=…")
    free = [str(dim or f"dim {i}") for i, dim in enumerate(info.shape) if not isinstance(dim, int)]
    if free:
        notes.append(f"{info.name}: {', '.join(free)} taken as 1, --shape says otherwise")
    return tuple(dim if isinstance(dim, int) else 1 for dim in info.shape)


def _read(path: Path, info: "ValueInfo") -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        text = f"--input {info.name}: {path} is no .npy file that can be read: {error}"
        raise _bad(text) from error
    # .npy keeps the bytes of types that numpy has no name for.
    if array.dtype.kind == "V" and array.dtype.itemsize == info.dtype.itemsize:
        return array.view(info.dtype)
    return array


def _generate(kind: str, info: "ValueInfo", shape: tuple[int, ...], index: int) -> NDArray[Any]:
    if info.dtype.kind in "OSUT":
        how = f"give it as --input {info.name}=FILE.npy"
        raise _bad(f"input {info.name!r} holds {info.dtype}; {how}")
    if kind in {"ones", "zeros"}:
        return np.full(shape, kind == "ones").astype(info.dtype)
    rng = np.random.default_rng([_SEED, index])
    # 0 and 1 are in range whatever an integer means: an index, a token, a mask.
    if info.dtype.kind in "biu":
        return rng.integers(0, 2, shape).astype(info.dtype)
    return rng.standard_normal(shape).astype(info.dtype)


def _given(model: "Model", inputs: Sequence[str], shapes: Sequence[str]) -> Feed:
    values = _split(inputs, "--input", model)
    sized = {
        name: _parse_shape(text, f"--shape {name}")
        for name, text in _split(shapes, "--shape", model).items()
    }
    named = values.keys() | sized.keys()
    infos = [*model.inputs, *(info for info in model.defaults if info.name in named)]
    arrays: Arrays = {}
    notes: list[str] = []
    for index, info in enumerate(infos):
        if not info.type.startswith("tensor("):
            raise _bad(f"input {info.name!r} is {info.type}; run the model from Python")
        value = values.get(info.name, "random")
        shape = sized.get(info.name)
        if value.endswith(".npy"):
            arrays[info.name] = _read(Path(value), info)
        elif value in {"random", "ones", "zeros"}:
            arrays[info.name] = _generate(value, info, _shape_of(info, shape, notes), index)
        elif _SHAPE.fullmatch(value):
            arrays[info.name] = _generate("random", info, _parse_shape(value, "--input"), index)
        else:
            kinds = "a .npy file, random, ones, zeros or a shape"
            file = " (np.save makes one, of np.fromfile(FILE, np.uint8) if the model takes a file)"
            raise _bad(f"--input {info.name} is {value!r}, it must be {kinds}{file}")
    return Feed("given", arrays, notes=tuple(notes))


def make_feeds(
    source: "Source", model: "Model", inputs: Sequence[str], shapes: Sequence[str]
) -> list[Feed]:
    """Make the inputs of all runs.

    Args:
        source: The model. One of the catalogue gets its own cases unless inputs are given.
        model: What was loaded of it. Inputs with a default keep that unless they are named.
        inputs: NAME=FILE.npy, NAME=random, NAME=ones, NAME=zeros or NAME=1,3,8,8.
        shapes: NAME=1,3,8,8 for inputs that are made up.

    Returns:
        At least one feed; the first is the one that is timed. Made-up numbers are always the same.

    Raises:
        Failure: An input cannot be made (exit code 2) or had (exit code 3).
    """
    if source.entry is None or inputs or shapes:
        return [_given(model, inputs, shapes)]
    from chipdock.models import ModelUnavailable, cases  # noqa: PLC0415  only for the catalogue

    try:
        found = cases(source.entry, source.path)
    except ModelUnavailable as error:
        click.echo(f"warning: {error}; inputs are made up", err=True)
        return [_given(model, inputs, shapes)]
    except ImportError as error:
        text = f"warning: {error.name} is missing (chipdock[models]); inputs are made up"
        click.echo(text, err=True)
        return [_given(model, inputs, shapes)]
    return [Feed(case.name, dict(case.feeds), case.decode, case.expected) for case in found]
