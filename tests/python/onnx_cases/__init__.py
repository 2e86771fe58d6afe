# SPDX-License-Identifier: Apache-2.0
"""ONNX's own backend test cases, fed straight to chipdock.

onnx.backend.test's runner skips cases by device name and lets a backend opt out; here every case of
every kind is run, and a case counts as passed only if its outputs were compared and agree.
"""
