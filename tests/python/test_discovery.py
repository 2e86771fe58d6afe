# SPDX-License-Identifier: Apache-2.0
"""Finding plugins: manifests are read, nothing is imported or opened, what is broken is listed."""

import os
import re
import sys
import textwrap
from pathlib import Path

import pytest
from api_support import fake, python_json

import chipdock
from chipdock._discovery import find_plugins, read_manifest

GOOD = """
[plugin]
id = "acme.one"
name = "one"
version = "2.0"
library = "libone.so"
[plugin.options]
threads = 2
"""


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No plugin path and no manifest folder of this machine."""
    monkeypatch.delenv("CHIPDOCK_PLUGIN_PATH", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    return tmp_path


def manifest(folder, text=GOOD):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plugin.toml").write_text(textwrap.dedent(text))
    return folder / "plugin.toml"


def found(source):
    return [m for m in find_plugins() if m.source == source]


def package(site, name, toml=GOOD, entry=None):
    """An installed distribution with one entry point, whose Python raises on import."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[chipdock.plugins]\nx = {entry or name}\n")
    (site / name).mkdir()
    (site / name / "__init__.py").write_text("raise RuntimeError('vendor code was imported')\n")
    if toml is not None:
        manifest(site / name, toml)


def test_the_embedded_plugin_is_found_first(nowhere):
    first = find_plugins()[0]
    assert (first.source, first.id, first.name, first.cause) == (
        "package chipdock",
        "chipdock.cpu",
        "cpu",
        "",
    )
    assert first.path.is_file()


def test_entry_points_are_read_without_importing(nowhere, monkeypatch):
    package(nowhere, "acme_one")
    monkeypatch.syspath_prepend(str(nowhere))
    (plugin,) = found("package acme_one")
    assert plugin.cause == ""
    assert (plugin.id, plugin.name, plugin.version) == ("acme.one", "one", "2.0")
    assert plugin.options == {"threads": "2"}
    assert plugin.path == nowhere / "acme_one" / "libone.so"
    assert "acme_one" not in sys.modules


def test_an_entry_point_may_name_a_subpackage_that_is_not_imported(nowhere, monkeypatch):
    package(nowhere, "acme_two", toml=None, entry="acme_two.plugin")
    manifest(nowhere / "acme_two" / "plugin")
    monkeypatch.syspath_prepend(str(nowhere))
    (plugin,) = found("package acme_two")
    assert plugin.cause == ""
    assert plugin.path.parent == nowhere / "acme_two" / "plugin"
    assert "acme_two" not in sys.modules


@pytest.mark.parametrize(
    "entry", ["acme_none", "nothing.at.all", "acme_none:thing", "acme_none.sub"]
)
def test_an_entry_point_without_a_manifest_is_listed_with_its_cause(nowhere, monkeypatch, entry):
    package(nowhere, "acme_none", toml=None, entry=entry)
    monkeypatch.syspath_prepend(str(nowhere))
    (plugin,) = found("package acme_none")
    assert plugin.cause.startswith("UNAVAILABLE: ")
    assert "reinstall" in plugin.cause
    assert "acme_none" not in sys.modules


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "no \\[plugin\\]"),
        ("[plugin", "cannot be read"),
        ("plugin = 3", "no \\[plugin\\]"),
        ("[plugin]\nname='a'\nlibrary='l.so'", "id is ''"),
        ("[plugin]\nid='acme'\nname='a'\nlibrary='l.so'", "id is 'acme'"),
        ("[plugin]\nid='Ac.Me'\nname='a'\nlibrary='l.so'", "id is"),
        ("[plugin]\nid=3\nname='a'\nlibrary='l.so'", "id is 3"),
        ("[plugin]\nid='a.b'\nname='A b'\nlibrary='l.so'", "name is 'A b'"),
        ("[plugin]\nid='a.b'\nname='a:0'\nlibrary='l.so'", "name is"),
        ("[plugin]\nid='a.b'\nname='a'", "library is missing"),
        ("[plugin]\nid='a.b'\nname='a'\nlibrary=7", "library is missing"),
        ("[plugin]\nid='a.b'\nname='a'\nlibrary='l.so'\noptions=4", "options"),
        ("\xff\xfe", "cannot be read"),
    ],
)
def test_broken_manifests_are_listed_with_their_cause(nowhere, monkeypatch, text, cause):
    file = nowhere / "bad" / "plugin.toml"
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1"))
    monkeypatch.setenv("CHIPDOCK_PLUGIN_PATH", str(file.parent))
    (plugin,) = found("CHIPDOCK_PLUGIN_PATH")
    assert plugin.cause.startswith("INVALID_ARGUMENT: ")
    assert str(file) in plugin.cause
    assert re.search(cause, plugin.cause)
    report = next(r for r in chipdock.plugins() if r.manifest == plugin)
    assert (report.state, report.cause) == ("broken", plugin.cause)
    assert chipdock.device("cpu:0").name == "cpu:0"


def test_a_manifest_that_cannot_be_opened(tmp_path):
    (tmp_path / "plugin.toml").mkdir()
    assert "cannot be read" in read_manifest(tmp_path / "plugin.toml", "test").cause


def test_plugin_path_takes_folders_files_and_libraries(nowhere, monkeypatch):
    manifest(nowhere / "a")
    manifest(nowhere / "many" / "b", GOOD.replace("one", "two"))
    manifest(nowhere / "many" / "c", GOOD.replace("one", "three"))
    bare = nowhere / "libbare.so"
    bare.write_bytes(b"")
    file = manifest(nowhere / "d", GOOD.replace("one", "four"))
    items = [nowhere / "a", nowhere / "many", "", bare, file, nowhere / "gone.so"]
    monkeypatch.setenv("CHIPDOCK_PLUGIN_PATH", os.pathsep.join(map(str, items)))
    plugins = found("CHIPDOCK_PLUGIN_PATH")
    assert [p.id for p in plugins] == ["acme.one", "acme.two", "acme.three", "", "acme.four", ""]
    assert plugins[3].path == bare
    assert plugins[5].cause == f"UNAVAILABLE: {nowhere / 'gone.so'} does not exist"


def test_manifest_folder(nowhere):
    manifest(nowhere / "config" / "chipdock" / "plugins.d" / "acme")
    (nowhere / "config" / "chipdock" / "plugins.d" / "flat.toml").write_text(
        GOOD.replace("one", "flat").replace("libflat.so", "/opt/acme/libflat.so")
    )
    source = str(nowhere / "config" / "chipdock" / "plugins.d")
    assert {m.id: str(m.path) for m in found(source)} == {
        "acme.one": f"{source}/acme/libone.so",
        "acme.flat": "/opt/acme/libflat.so",
    }


def test_a_library_found_twice_counts_once(nowhere, monkeypatch):
    manifest(nowhere / "a")
    (nowhere / "b").symlink_to(nowhere / "a")
    paths = os.pathsep.join(str(nowhere / n) for n in ("a", "b", "a"))
    monkeypatch.setenv("CHIPDOCK_PLUGIN_PATH", paths)
    assert len(found("CHIPDOCK_PLUGIN_PATH")) == 1


def test_scanning_opens_no_library(nowhere, monkeypatch):
    monkeypatch.setenv("CHIPDOCK_PLUGIN_PATH", fake("work"))
    (plugin,) = found("CHIPDOCK_PLUGIN_PATH")
    assert plugin.cause == ""
    loaded = "libwork.so" in Path("/proc/self/maps").read_text(encoding="utf-8")
    if loaded:  # another test of this process had it: look in a fresh one
        code = (
            "import json, chipdock._discovery as d; d.find_plugins();"
            "print(json.dumps('libwork' in open('/proc/self/maps').read()))"
        )
        assert python_json(code, CHIPDOCK_PLUGIN_PATH=fake("work")) is False


@pytest.mark.slow
def test_import_loads_no_plugin():
    code = (
        "import json, chipdock; t = open('/proc/self/maps').read();"
        "print(json.dumps(['libnano' in t, 'libthrows' in t, 'chipdock_cpu' in t]))"
    )
    path = os.pathsep.join([fake("nano"), fake("throws")])
    assert python_json(code, CHIPDOCK_PLUGIN_PATH=path) == [False, False, False]
