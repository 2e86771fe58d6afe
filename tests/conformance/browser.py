# SPDX-License-Identifier: Apache-2.0
"""A headless browser for the tests of pages. Absent, it is said so and counts as not shown."""

import os
import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """Path of a Chromium; skips the test with the reason if there is none.

    CHIPDOCK_TEST_BROWSER names one; a wrong name is a failure, not a skip.
    """
    named = os.environ.get("CHIPDOCK_TEST_BROWSER", "")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        if named:
            pytest.fail(f"CHIPDOCK_TEST_BROWSER={named} is no program")
        pytest.skip(
            f"none of {', '.join(NAMES)} is installed: the report in a browser is not shown"
        )
    return found


def drive(page, profile, *options):
    """Run the browser on a file and return what it printed."""
    done = subprocess.run(
        [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         "--disable-extensions", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND",
         f"--user-data-dir={profile}", *options, page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout
