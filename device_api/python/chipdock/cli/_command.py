# SPDX-License-Identifier: Apache-2.0
"""What the commands are made of: options that all have, and the error that is shown as it is."""

import os
from collections.abc import Sequence
from typing import Any

import click

from chipdock.cli.exit_codes import ExitCode

__all__ = ["Command", "Failure", "did_you_mean", "given_plugins"]

PLUGIN_PATH_VARIABLE = "CHIPDOCK_PLUGIN_PATH"
_GIVEN = "chipdock.cli.given_plugins"


class Failure(Exception):  # noqa: N818  it is an outcome with an exit code
    """An error to be shown as it is."""

    def __init__(self, text: str, code: ExitCode) -> None:
        """Keep the text, "CODE: what, values, what was allowed, what to do", and the exit code."""
        super().__init__(text)
        self.code = code


def _add_plugins(
    ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Put the paths before those of the environment, for as long as the command runs."""
    if value:
        before = os.environ.get(PLUGIN_PATH_VARIABLE)
        paths = [os.path.abspath(path) for path in value]  # noqa: PTH100  a path list, as text
        os.environ[PLUGIN_PATH_VARIABLE] = os.pathsep.join([*paths, *([before] if before else [])])

        def restore() -> None:
            if before is None:
                os.environ.pop(PLUGIN_PATH_VARIABLE, None)
            else:
                os.environ[PLUGIN_PATH_VARIABLE] = before

        ctx.find_root().call_on_close(restore)
        ctx.meta[_GIVEN] = tuple(paths)
    return value


def given_plugins() -> tuple[str, ...]:
    """Return the paths that --plugin gave the command that runs."""
    ctx = click.get_current_context(silent=True)
    found: tuple[str, ...] = ctx.meta.get(_GIVEN, ()) if ctx is not None else ()
    return found


def _common_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--plugin"],
            multiple=True,
            type=click.Path(exists=True),
            expose_value=False,
            callback=_add_plugins,
            help="Also use this plugin: its library or plugin.toml. May be repeated.",
        ),
        click.Option(
            ["--debug"], is_flag=True, expose_value=False, help="Show where an error came from."
        ),
    ]


class Command(click.Command):
    """A command with the options that all commands have."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  as the base class has it
        """Take what click.Command takes."""
        super().__init__(*args, **kwargs)
        self.params += _common_options()


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return "; did you mean 'x'?", or what there is when nothing is close."""
    import difflib  # noqa: PLC0415  slow, and only for mistakes

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.55)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(known)}" if known else ""
