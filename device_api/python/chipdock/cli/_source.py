# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  the package with its libraries is imported when a command asks
"""From the word MODEL on the command line to a loaded model: a file, or a name of the catalogue."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from chipdock.cli._command import Failure, did_you_mean
from chipdock.cli._inventory import device_option, open_device
from chipdock.cli._progress import working
from chipdock.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    import chipdock
    from chipdock.model import FallbackPolicy
    from chipdock.models import Entry

__all__ = ["Source", "find_model", "load_model", "model_argument", "placement_options"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Source:
    """Where a model is.

    Attributes:
        name: Name for people.
        path: Its ONNX file.
        entry: Its entry of the catalogue, None for a file that the user named.
    """

    name: str
    path: Path
    entry: "Entry | None"


class _ModelType(click.types.StringParamType):
    """A path or a name of the catalogue."""

    name = "model"

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the catalogue's names, and files through the shell."""
        from chipdock.models import entries

        names = [entry.name for entry in entries() if entry.name.startswith(incomplete)]
        return [*map(CompletionItem, names), CompletionItem(incomplete, type="file")]


model_argument = click.argument("model", type=_ModelType())


def placement_options(function: _Function) -> _Function:
    """Add the options that say where and how a model is loaded."""
    for option in (
        click.option("--threads", type=click.IntRange(min=1), help="Host threads for kernels."),
        click.option(
            "--fallback",
            type=click.Choice(["error", "warn", "allow"]),
            default="error",
            show_default=True,
            help="For nodes that the device has no kernel for: refuse the model, or use the host.",
        ),
        device_option,
    ):
        function = option(function)
    return function


def _catalogue_entry(name: str) -> "Entry | None":
    from chipdock.models import entries

    return next((entry for entry in entries() if entry.name == name), None)


def _suggestion(text: str) -> str:
    from chipdock.models import entries

    names = [entry.name for entry in entries()]
    folder = Path(text).parent
    files = sorted(folder.glob("*.onnx")) if folder.is_dir() else []
    return did_you_mean(text, [*names, *(str(file) for file in files)])


def find_model(text: str) -> Source:
    """Find a model; one of the catalogue is fetched when it is not here yet.

    Raises:
        Failure: No such file or name (exit code 2), or it cannot be had (exit code 3).
    """
    path = Path(text)
    if path.exists():
        return Source(path.stem, path, None)
    entry = _catalogue_entry(text)
    if entry is None:
        what = "is neither a file nor a model of the catalogue"
        raise Failure(f"INVALID_ARGUMENT: {text!r} {what}{_suggestion(text)}", ExitCode.USAGE)
    from chipdock.models.fetch import ModelUnavailable, fetch

    try:
        with working(f"fetching {text}"):
            return Source(text, fetch(entry), entry)
    except ModelUnavailable as error:
        raise Failure(str(error), ExitCode.NOT_RUN) from error


def load_model(
    source: Source, device: str, fallback: "FallbackPolicy", threads: int | None
) -> "tuple[chipdock.Model, float]":
    """Open the device and load the model; what fell back with "warn" is said on stderr.

    Returns:
        The model, and the milliseconds that loading it took without opening the device.
    """
    import chipdock

    target = open_device(device)
    with warnings.catch_warnings(record=True) as caught, working(f"loading {source.name}"):
        warnings.simplefilter("always", chipdock.FallbackWarning)
        start = time.perf_counter()
        try:
            model = chipdock.load(source.path, device=target, fallback=fallback, threads=threads)
        except chipdock.errors.UnsupportedError as error:  # as it is said here, not in Python
            text = str(error).replace('load with fallback="allow"', "give --fallback allow")
            raise chipdock.errors.UnsupportedError(text) from error
        taken = (time.perf_counter() - start) * 1e3
    for warning in caught:
        click.echo(f"warning: {warning.message}", err=True)
    return model, taken
