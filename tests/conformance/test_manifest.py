# SPDX-License-Identifier: Apache-2.0
"""The manifest: what is written is what is read, and the root changes when a case does."""

import json
import subprocess
import sys
import textwrap

import pytest

from chipdock.conformance.case import Case, Variant, case
from chipdock.conformance.manifest import (
    Row,
    dump,
    load,
    main,
    make,
    merkle_root,
    read_manifest,
    suite_folder,
)

ROWS = [
    Row(
        Case("L1.a.b.any.x", duties=("MEM-1",), budget_ms=7), "l1/t.py", "test_b", "Says it.", "00"
    ),
    Row(
        Case("L1.a.b.any.y", needs="slot:a.b", mustpass=True), "l1/t.py", "test_b", "Says it.", "01"
    ),
    Row(Case("L0.a.c.f32.z", was=("L0.a.d.f32.z",)), "l0/t.py", "test_c", "", "02"),
]
BODY = """
    from chipdock.conformance.case import Variant, case

    LIMIT = 3

    def helper(value):
        return value + LIMIT

    @case("L1.a.b", variants=[Variant(name="x", n=1), Variant(name="y", n=2)])
    def test_b(target, variant):
        \"\"\"Says it.\"\"\"
        assert helper(variant.n)

    @case("L1.a.c")
    def test_c(target, variant):
        assert True
"""


def write(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "test_it.py").write_text(textwrap.dedent(text), encoding="utf-8")
    code = "import sys; from chipdock.conformance.manifest import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "--write", "--suite", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return done, folder / "manifest.json"


def bodies(path):
    return {row["id"]: row["body"] for row in json.loads(path.read_text())["cases"]}


def test_a_manifest_comes_back_as_it_was(tmp_path):
    made = make(ROWS, tmp_path)
    text = dump(made)
    assert load(text, tmp_path) == made
    cases = [line for line in text.splitlines() if line.startswith('{"id":')]
    assert len(cases) == len(ROWS)  # a case a line, so that a diff shows cases


def test_the_root_is_the_same_in_any_order_and_changes_with_any_fact(tmp_path):
    root = make(ROWS, tmp_path).root
    assert make(ROWS[::-1], tmp_path).root == root
    roots = {root, make(ROWS[:2], tmp_path).root}
    for change in (
        Row(Case("L0.a.c.f32.z"), "l0/t.py", "test_c", "", "02"),
        Row(Case("L0.a.c.f32.z", was=("L0.a.d.f32.z",), revision=2), "l0/t.py", "test_c", "", "02"),
        Row(Case("L0.a.c.f32.z", was=("L0.a.d.f32.z",)), "l0/t.py", "test_c", "", "03"),
    ):
        roots.add(make([*ROWS[:2], change], tmp_path).root)
    assert len(roots) == 5


def test_the_root_keeps_leaves_and_nodes_apart():
    leaves = [bytes([n]) * 32 for n in range(3)]
    inner = bytes.fromhex(merkle_root(leaves[:2]))
    assert merkle_root(leaves) != merkle_root([inner, leaves[2]][::-1])
    assert merkle_root([leaves[0]]) == leaves[0].hex()
    assert len({merkle_root(leaves[:n]) for n in range(4)}) == 4


@pytest.mark.slow
def test_a_body_hash_follows_the_function_its_helpers_and_its_variant(tmp_path):
    done, path = write(tmp_path / "one", BODY)
    assert done.returncode == 0, done.stderr
    first = bodies(path)
    assert len(set(first.values())) == 3
    _, other = write(tmp_path / "two", BODY.replace("LIMIT = 3", "LIMIT = 4"))
    changed = {name for name, body in bodies(other).items() if body != first[name]}
    assert changed == {"L1.a.b.any.x", "L1.a.b.any.y"}
    _, other = write(tmp_path / "three", BODY.replace("n=2", "n=5"))
    assert {n for n, body in bodies(other).items() if body != first[n]} == {"L1.a.b.any.y"}


@pytest.mark.slow
def test_a_body_hash_is_the_same_in_every_process(tmp_path):
    text = BODY.replace("LIMIT = 3", "LIMIT = 3, lambda x: x")
    found = [bodies(write(tmp_path / name, text)[1]) for name in ("one", "two")]
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def test_it():\n    pass\n", "is no case"),
        (BODY + BODY.split("LIMIT = 3")[1].replace("test_b", "test_d"), "is taken twice"),
        ("import no_such_module_anywhere\n", "no_such_module_anywhere"),
    ],
)
def test_a_suite_that_is_wrong_has_no_manifest(tmp_path, text, complaint):
    done, path = write(tmp_path / "suite", text)
    assert done.returncode != 0
    assert complaint in done.stderr
    assert not path.exists()


def test_a_missing_manifest_says_how_to_make_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="--write makes it"):
        read_manifest(tmp_path)


def test_a_manifest_of_another_schema_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text('{"schema":99,"root":""}')
    with pytest.raises(ValueError, match="no manifest of schema 1"):
        read_manifest(tmp_path)


def test_the_installed_suite_has_a_manifest_whose_root_is_its_own():
    found = read_manifest(suite_folder())
    assert found.rows
    assert make(found.rows.values(), found.folder).root == found.root


def test_variants_that_clash_or_are_malformed_are_refused():
    with pytest.raises(ValueError, match="taken twice"):
        case("L1.a.b", variants=[Variant(name="x"), Variant(name="x")])
    with pytest.raises(ValueError, match="is no case id"):
        case("L1.a", variants=[Variant()])


def test_check_needs_one_of_its_options(capsys):
    with pytest.raises(SystemExit):
        main([])
    assert "--write" in capsys.readouterr().err
