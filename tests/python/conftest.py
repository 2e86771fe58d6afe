# SPDX-License-Identifier: Apache-2.0
"""Makes api_support importable by the tests of this folder."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def torch():
    """PyTorch; without it the exchange with torch is reported as not shown."""
    return pytest.importorskip(
        "torch", reason="torch is not installed: DLPack with torch not shown"
    )


@pytest.fixture
def as_written(monkeypatch):
    """Models keep their nodes, for tests that count or cut between them."""
    monkeypatch.setenv("CHIPDOCK_FUSION", "off")
    monkeypatch.setenv("CHIPDOCK_LAYOUTS", "off")


# Files whose tests hold whatever optional slots a plugin has; `./dev mask` runs them under masks.
FUNCTIONAL = (
    "test_ops_",
    "test_array",
    "test_control_flow",
    "test_scan",
    "test_model.",
    "test_model_options",
    "test_binding",
    "test_streams",
)


# … but for these, which are about what a mask takes away: shared memory, where nodes run, what
# kernels refuse.
WHOLE_PLUGIN = (
    "test_numpy_shares_memory_of_the_cpu_device",
    "test_slices_are_views_that_numpy_shares",
    "test_bound_outputs_land_where_they_should",
    "test_an_output_bound_to_an_input",
    "test_explain_shows_nodes_of_bodies_and_the_control_node",
    "test_views_do_no_work",
    "test_constants_are_folded",
    "test_explain_names_every_node_and_why",
    "test_memory_report_follows_the_shapes",
    "test_what_does_not_fit_is_named",
    "test_mixed_dtypes_are_refused",
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name.startswith(FUNCTIONAL) and item.originalname not in WHOLE_PLUGIN:
            item.add_marker(pytest.mark.functional)
