# SPDX-License-Identifier: Apache-2.0
"""chipdock.conformance.evidence.html: complete, self-contained, and readable in a browser."""

import re
from html.parser import HTMLParser

import browser
import evidence_sample as sample
import pytest

from chipdock.conformance.evidence import html, report
from chipdock.conformance.outcomes import Outcome


def page_of(records, rows, **more):
    document = report.build(sample.RUN, records, rows, end=sample.END, **more)
    for case in document["cases"]:
        if "calls" in case:
            case["repro"] = f"sh repro/{case['id']}.sh"
    return html.render(document)


@pytest.fixture(scope="module")
def small():
    return page_of(
        *sample.every_outcome(),
        absence={
            "operators": [{"op": "Einsum", "dtypes": ["f16"]}],
            "models": [{"name": "whisper_tiny", "missing": ["STFT"]}],
        },
        waivers={
            "entries": [{"id": "W-2026-014", "kind": "xfail", "cases": ["L2.*"], "matched": ["a"],
                         "days_left": 12, "owner": "dev@demo.example", "reason": "known",
                         "issue": "https://demo.example/88"}],
            "problems": [{"kind": "expired", "text": "W-2026-001 has expired"}],
        },
    )  # fmt: skip


class Checker(HTMLParser):
    """Finds tags that do not close, links that lead nowhere, and what a page would fetch."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self):
        super().__init__()
        self.open, self.problems, self.ids, self.links = [], [], set(), set()

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag in {"script", "link", "img", "iframe", "object"} or any(
            k.startswith("on") for k in values
        ):
            self.problems.append(f"<{tag}> at {self.getpos()}")
        if tag == "a":
            self.links.add(values["href"])
        if "id" in values:
            if values["id"] in self.ids:
                self.problems.append(f"id {values['id']} twice")
            self.ids.add(values["id"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()}")


def test_page_is_well_formed_and_fetches_nothing(small):
    checker = Checker()
    checker.feed(small)
    assert checker.problems == []
    assert checker.open == []
    assert {f"#{name}" for name in checker.ids} >= checker.links
    assert "url(" not in small
    assert "@import" not in small


def test_page_has_all_that_a_reader_needs(small):
    for text in (
        *Outcome, "ULP 9.25, limit 4, worst at index [3, 17], expected 1.2345678, got 1.2345699",
        "sh repro/", "kernel.launch → running", "SIGSEGV", "whisper_tiny", "Einsum: f16",
        "W-2026-014", "W-2026-001 has expired", "20240229", "Demo X1", "9f2c9f2c", "memory.fill",
        "OUT OF MEMORY", "fails only behind 2 cases",
    ):  # fmt: skip
        assert text in small, text


def test_text_of_a_plugin_cannot_break_out_of_the_page():
    record = sample.wrong(
        "L2.op.erf.f16.odd", reason="<script>alert(1)</script>", stderr="</pre><b>"
    )
    page = page_of([record], {})
    assert "<script" not in page
    assert "</pre><b>" not in page
    assert "&lt;script&gt;" in page


def test_page_of_a_good_run_says_passed():
    records = [sample.passed("L0.abi.query.any.base")]
    document = report.build(sample.RUN, records, {}, end=sample.END | {"exit_code": 0})
    page = html.render(document)
    assert "demo:0 passed" in page
    assert "Failures" not in page


@pytest.mark.slow
@pytest.mark.parametrize("failing", [0.01, 1.0])
def test_page_of_a_release_run_stays_small(failing):
    records, rows = sample.large(5500, failing)
    assert len(page_of(records, rows)) < 3_000_000


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(small, tmp_path, width):
    # A page of its own measures the report in a frame: the report itself allows no scripts.
    (tmp_path / "report.html").write_text(small, encoding="utf-8")
    (tmp_path / "measure.html").write_text(
        f'<iframe src="report.html" style="width:{width}px;height:900px;border:0" '
        "onload=\"var d=contentDocument, r=d.documentElement; d.querySelectorAll('details')"
        ".forEach(e=>e.open=true); document.title='W'+r.scrollWidth+' H'+r.scrollHeight\">"
        "</iframe>",
        encoding="utf-8",
    )
    shown = browser.drive(
        tmp_path / "measure.html", tmp_path / "profile",
        "--allow-file-access-from-files", "--dump-dom", "--virtual-time-budget=3000",
    )  # fmt: skip
    match = re.search(r"W(\d+) H(\d+)", shown)
    assert match, shown[:500]
    assert int(match[1]) <= width
    assert int(match[2]) > 900


@pytest.mark.slow
def test_browser_shows_every_section(small, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(small, encoding="utf-8")
    shown = browser.drive(file, tmp_path / "profile", "--dump-dom")
    for name in ("summary", "failures", "operators", "unjudged", "waivers", "coverage", "timing"):
        assert f'<section id="{name}"' in shown
    drawn = browser.drive(
        file,
        tmp_path / "profile",
        f"--screenshot={tmp_path / 'shot.png'}",
        "--window-size=1280,2000",
    )
    assert drawn is not None
    # A blank page of this size packs into a few kB.
    assert (tmp_path / "shot.png").stat().st_size > 50_000


def contrast(one, other):
    """Contrast ratio of two colours. Source: WCAG 2.2, relative luminance."""

    def luminance(text):
        digits = text[1:] if len(text) == 7 else "".join(c * 2 for c in text[1:])
        parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
        parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_can_be_read_in_both_themes(small):
    themes = re.findall(r":root \{(.*?)\}", small, re.DOTALL)[:2]
    assert len(themes) == 2
    for theme in themes:
        colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]+)", theme))
        pairs = [
            (name, f"{name}-soft") for name in ("good", "bad", "warn", "waived", "none", "gap")
        ]
        pairs += [(name, "card") for name in ("text", "soft", "link", "good", "bad", "warn")]
        pairs += [("text", "page"), ("text", "code")]
        for front, back in pairs:
            ratio = contrast(colour[front], colour[back])
            assert ratio >= 4.5, f"{front} on {back}: {ratio:.2f}"
