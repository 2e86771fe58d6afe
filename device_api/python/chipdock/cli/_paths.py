# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  the package is imported when the command runs
"""What build scripts and shells ask for: folders, and the completion script."""

import click
from click.shell_completion import get_completion_class

from chipdock.cli._command import Command
from chipdock.cli._output import emit_json, json_option

__all__ = ["cmake_dir", "completion", "include_dir"]


def _show(path: str, as_json: bool) -> None:
    if as_json:
        emit_json("path", {"path": path})
    else:
        click.echo(path)


@click.command("include-dir", cls=Command)
@json_option
def include_dir(as_json: bool) -> None:
    """Print the folder of the C headers."""
    import chipdock

    _show(str(chipdock.include_dir()), as_json)


@click.command("cmake-dir", cls=Command)
@json_option
def cmake_dir(as_json: bool) -> None:
    """Print the folder for CMake's chipdock_DIR."""
    import chipdock

    _show(str(chipdock.cmake_dir()), as_json)


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash  eval "$(chipdock completion bash)"             in ~/.bashrc
    zsh   eval "$(chipdock completion zsh)"              in ~/.zshrc
    fish  chipdock completion fish > ~/.config/fish/completions/chipdock.fish
    """  # noqa: D301  click wants the control character itself
    kind = get_completion_class(shell)
    assert kind is not None  # click.Choice has the three that click knows
    click.echo(kind(ctx.find_root().command, {}, "chipdock", "_CHIPDOCK_COMPLETE").source())
