# SPDX-License-Identifier: Apache-2.0
"""The command line, `conformance-run`: without a sub-command it runs cases.

Sub-commands are in the modules _cli_<name>.py; each is a click command of that name.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from chipdock.cli._app import Group, describe
from chipdock.cli._command import Failure
from chipdock.cli.exit_codes import PRIORITY, ExitCode
from chipdock.conformance.journal import JournalError

__all__ = ["main"]

_EPILOG = "\b\nExit codes, the first that holds:\n" + "\n".join(
    f"  {int(code):>3}  {meaning}" for code, meaning in PRIORITY
)
_DEFAULT = "run"


class _WithDefault(Group):
    """Takes options as those of its command `run`; finds commands by their files."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands, `run` first."""
        files = Path(__file__).parent.glob("_cli_*.py")
        names = sorted(path.stem.removeprefix("_cli_") for path in files)
        return [_DEFAULT, *(name for name in names if name != _DEFAULT)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of a name; the others are left alone."""
        if cmd_name not in self.list_commands(ctx):
            return None
        # Some of the files hold what commands share, and no command.
        module = import_module(f"chipdock.conformance._cli_{cmd_name}")
        found = getattr(module, cmd_name, None)
        return found if isinstance(found, click.Command) else None

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a file that cannot be read or written is no failure of a case."""
        try:
            return super().invoke(ctx)
        except JournalError as error:
            raise Failure(str(error), ExitCode.USAGE) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Failure(describe(error)[0], ExitCode.INFRASTRUCTURE) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` before options that are not the group's."""
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help", "--version"):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


@click.group(
    "conformance-run",
    cls=_WithDefault,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="chipdock", message="conformance-run %(version)s")
def _cli() -> None:
    """Judge a plugin by the cases of the conformance suite.

    Without a command, options are those of `run`: conformance-run --device acme:0 --level core
    """


def main() -> None:
    """Run the command line of this process and exit with its code."""
    try:
        _cli.main(prog_name="conformance-run")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
