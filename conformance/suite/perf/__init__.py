# SPDX-License-Identifier: Apache-2.0
"""Level P: how fast, always against something."""
