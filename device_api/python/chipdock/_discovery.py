# SPDX-License-Identifier: Apache-2.0
"""Finding plugins: reads manifests (plugin.toml), opens no library and imports no vendor code.

A broken manifest is a found plugin with a cause, never an exception.
"""

import functools
import importlib.metadata
import importlib.util
import os
import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

__all__ = ["Manifest", "find_plugins", "plugins_at", "read_manifest"]

ENTRY_POINT_GROUP = "chipdock.plugins"
MANIFEST = "plugin.toml"
_ID = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Manifest:
    """One plugin as its plugin.toml describes it.

    Attributes:
        source: Where it was found: "package NAME", "CHIPDOCK_PLUGIN_PATH", a manifest folder, or
            "path".
        path: The library; may not exist.
        id: "vendor.plugin", the identity; "" if the manifest could not be read.
        name: Device name: "acme" in "acme:0".
        version: The plugin's version as the manifest says.
        cause: Why the manifest is of no use; "" if it is fine.
        options: Options for opening devices.
    """

    source: str
    path: Path
    id: str = ""
    name: str = ""
    version: str = ""
    cause: str = ""
    options: dict[str, str] = field(default_factory=dict)


def read_manifest(file: Path, source: str) -> Manifest:
    """Read one plugin.toml. Never raises; what is wrong stands in `cause`."""
    folder = file.parent
    try:
        with file.open("rb") as stream:
            table = tomllib.load(stream).get("plugin")
        if not isinstance(table, dict):
            return Manifest(source, file, cause=f"INVALID_ARGUMENT: {file} has no [plugin] table")
        plugin_id, name, library = (table.get(key, "") for key in ("id", "name", "library"))
        problem = ""
        if not isinstance(plugin_id, str) or not _ID.fullmatch(plugin_id):
            problem = f"id is {plugin_id!r}, it must look like 'vendor.plugin'"
        elif not isinstance(name, str) or not _NAME.fullmatch(name):
            problem = f"name is {name!r}, it must match [a-z][a-z0-9_]*"
        elif not isinstance(library, str) or not library:
            problem = "library is missing: the file name of the plugin's shared library"
        elif not isinstance(table.get("options", {}), dict):
            problem = "options is no table of names and values"
        if problem:
            return Manifest(source, file, cause=f"INVALID_ARGUMENT: {file}: {problem}")
        options = {str(k): str(v) for k, v in table.get("options", {}).items()}
        version = str(table.get("version", ""))
        return Manifest(source, folder / library, plugin_id, name, version, "", options)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError) as error:
        return Manifest(source, file, cause=f"INVALID_ARGUMENT: {file} cannot be read: {error}")


def _entry_folder(entry: importlib.metadata.EntryPoint) -> Path | None:
    """Folder an entry point names, without importing anything of it."""
    parts = entry.value.split(":")[0].strip().split(".")
    if entry.dist is not None:
        located = Path(str(entry.dist.locate_file("/".join(parts))))
        if (located / MANIFEST).is_file():
            return located
    # An editable install keeps its files elsewhere; finding a top-level package imports nothing.
    spec = importlib.util.find_spec(parts[0])
    for base in (spec.submodule_search_locations or []) if spec is not None else []:
        folder = Path(base, *parts[1:])
        if (folder / MANIFEST).is_file():
            return folder
    return None


def _search_path() -> tuple[tuple[str, int], ...]:
    """The folders in which packages lie, with when each was changed last: an install changes it."""
    known = []
    for folder in sys.path:
        try:
            known.append((folder, Path(folder or ".").stat().st_mtime_ns))
        except (OSError, ValueError):
            known.append((folder, -1))
    return tuple(known)


@functools.lru_cache(maxsize=1)
def _from_packages(_: tuple[tuple[str, int], ...]) -> tuple[Manifest, ...]:
    """Plugins of packages. Each load of a model asks; metadata of all packages takes 6 ms."""
    found = []
    for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        source = f"package {entry.dist.name}" if entry.dist is not None else "package"
        try:
            folder = _entry_folder(entry)
        except (ImportError, ValueError, OSError) as error:
            found.append(Manifest(source, Path(entry.value), cause=f"UNAVAILABLE: {error}"))
            continue
        if folder is None:
            cause = f"UNAVAILABLE: {source} has no {MANIFEST} at {entry.value}; reinstall it"
            found.append(Manifest(source, Path(entry.value), cause=cause))
        else:
            found.append(read_manifest(folder / MANIFEST, source))
    return tuple(found)


def plugins_at(item: Path, source: str) -> list[Manifest]:
    """What a path names: a plugin.toml, a folder of one, a folder of such folders, or a library."""
    try:
        if item.is_dir():
            if (item / MANIFEST).is_file():
                return [read_manifest(item / MANIFEST, source)]
            nested = sorted(item.glob(f"*/{MANIFEST}")) + sorted(item.glob("*.toml"))
            return [read_manifest(file, source) for file in nested]
        if item.suffix == ".toml":
            return [read_manifest(item, source)]
    except OSError as error:
        return [Manifest(source, item, cause=f"UNAVAILABLE: {item} cannot be read: {error}")]
    cause = "" if item.is_file() else f"UNAVAILABLE: {item} does not exist"
    return [Manifest(source, item, cause=cause)]


def find_plugins() -> list[Manifest]:
    """All plugins this process can see, in order: packages, CHIPDOCK_PLUGIN_PATH, manifest folders.

    Returns:
        One entry per library; a library found twice counts once. Nothing is loaded.
    """
    found = list(_from_packages(_search_path()))
    for item in os.environ.get("CHIPDOCK_PLUGIN_PATH", "").split(os.pathsep):
        if item:
            found += plugins_at(Path(item), "CHIPDOCK_PLUGIN_PATH")
    for base in (
        platformdirs.site_config_path("chipdock"),
        platformdirs.user_config_path("chipdock"),
    ):
        if (base / "plugins.d").is_dir():
            found += plugins_at(base / "plugins.d", str(base / "plugins.d"))
    unique: dict[str, Manifest] = {}
    for manifest in found:
        unique.setdefault(os.path.realpath(manifest.path), manifest)
    return list(unique.values())
