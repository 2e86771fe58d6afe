# SPDX-License-Identifier: Apache-2.0
"""The command group: finds commands, and turns every error into one line and an exit code.

What the commands do is in the modules that are named after them.
"""

import errno
import os
import sys
from collections.abc import MutableMapping, Sequence
from typing import Any

import click

from chipdock.cli._bench import bench
from chipdock.cli._command import Failure, did_you_mean
from chipdock.cli._devices import devices
from chipdock.cli._doctor import doctor
from chipdock.cli._explain import explain
from chipdock.cli._info import info
from chipdock.cli._interrupt import was_interrupted
from chipdock.cli._paths import cmake_dir, completion, include_dir
from chipdock.cli._plugins import plugins
from chipdock.cli._run import run
from chipdock.cli.exit_codes import PRIORITY, ExitCode, for_error

__all__ = ["Group", "cli", "describe"]

DEBUG_VARIABLE = "CHIPDOCK_DEBUG"


# What a full disk, a quota or a broken device says to a write to stdout.
_OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _usage_text(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        params = error.ctx.command.params if error.ctx is not None else []
        known = [name for param in params for name in param.opts if name.startswith("--")]
        hint = did_you_mean(error.option_name, [*known, "--help"])
        text = f"no option {error.option_name!r}{hint}"
    else:
        text = error.format_message().rstrip(".")
        text = text[:1].lower() + text[1:]
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "chipdock"
    return f"INVALID_ARGUMENT: {text} (see '{path} --help')"


def _one_line(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


def describe(error: BaseException) -> tuple[str, ExitCode]:
    """Return the line and the exit code of an error."""
    if isinstance(error, Failure):
        return _one_line(str(error)), error.code
    if isinstance(error, click.ClickException):
        return _one_line(_usage_text(error)), ExitCode.USAGE
    status = getattr(error, "code", None)
    if isinstance(status, str) and type(error).__module__ == "chipdock.errors":
        text = _one_line(str(error))
        known = text.split(":", 1)[0].isupper()
        return text if known else f"{status}: {text}", for_error(status)
    if isinstance(error, MemoryError):
        return "OUT_OF_MEMORY: the host has no memory left for it", ExitCode.FAILURES
    if isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT_FULL:
        what = f"the output cannot be written: {os.strerror(error.errno or 0)}"
        return f"UNAVAILABLE: {what}; nothing behind this point was shown", ExitCode.FAILURES
    if isinstance(error, OSError):
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return f"UNAVAILABLE: {what}", ExitCode.FAILURES
    text = _one_line(f"INTERNAL: {type(error).__name__}: {error}")
    return f"{text}; this is a fault of chipdock, --debug shows where", ExitCode.FAILURES


def _close_stdout() -> None:
    """Let nothing complain about output that has nowhere to go, not even the flush at exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass


class Group(click.Group):
    """The top level. `main` never lets an exception out, whatever it was."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which a newcomer wants them."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; an unknown one is answered with the closest that there is."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            raise click.UsageError(f"no command {name!r}{did_you_mean(name, known)}", ctx)
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,  # noqa: ANN401  as the base class has it
    ) -> Any:  # noqa: ANN401
        """Parse, run, report and exit."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        words = list(sys.argv[1:] if args is None else args)
        name = prog_name or "chipdock"
        context: MutableMapping[str, Any] = extra
        self._main_shell_completion(context, name, complete_var)
        code = self._run(words, name, extra)
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _close_stdout()
            code = ExitCode.PIPE_CLOSED
        except OSError as error:
            _close_stdout()
            if code == ExitCode.GOOD:
                text, code = describe(error)
                click.echo(f"error: {text}", err=True)
        sys.exit(int(code))

    def _run(self, words: list[str], name: str, extra: dict[str, Any]) -> int:
        debug = "--debug" in words or os.environ.get(DEBUG_VARIABLE, "0") not in {"", "0"}
        try:
            with self.make_context(name, words, **extra) as ctx:
                self.invoke(ctx)
            return ExitCode.GOOD
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            return ExitCode.USAGE
        except click.exceptions.Exit as error:
            return error.exit_code
        except (KeyboardInterrupt, click.Abort):
            click.echo("interrupted", err=True)
            return ExitCode.INTERRUPTED
        except BrokenPipeError:
            _close_stdout()
            return ExitCode.PIPE_CLOSED
        except Exception as error:  # the last line of defence against tracebacks
            if was_interrupted():
                click.echo("interrupted", err=True)
                return ExitCode.INTERRUPTED
            if debug:
                import traceback  # noqa: PLC0415  slow, and only for faults

                traceback.print_exc()
            text, code = describe(error)
            click.echo(f"error: {text}", err=True)
            return code


_EPILOG = "\b\nExit codes, the first that holds:\n" + "\n".join(
    f"  {int(code):>3}  {meaning}" for code, meaning in PRIORITY
)


@click.group(
    "chipdock",
    cls=Group,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="chipdock", message="chipdock %(version)s")
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an error came from.")
def cli() -> None:
    """Run ONNX models on any chip that has a chipdock plugin."""


for _command in (
    devices,
    info,
    doctor,
    run,
    explain,
    bench,
    plugins,
    include_dir,
    cmake_dir,
    completion,
):
    cli.add_command(_command)
