# SPDX-License-Identifier: Apache-2.0
"""Random graphs of 1 to 30 nodes, judged by the ONNX reference evaluator.

`PYTHONPATH=tests/python python -m random_graphs --seed 1 --count 20000` runs many;
test_random_graphs.py runs a few.
"""
