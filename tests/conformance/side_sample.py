# SPDX-License-Identifier: Apache-2.0
"""Pieces of work for the tests of side.py."""

import os

import numpy as np

import chipdock


def add(device):
    x = chipdock.array(np.ones(64, np.float32), device)
    return lambda: chipdock.run_op("Add", x, x).numpy()


def add_twice(device):
    one = add(device)
    return lambda: (one(), one(), print("noise on standard output"))


def fails(device):
    rest = iter([1])

    def work():
        next(rest)

    return work


def dies(device):
    rest = iter([1])
    return lambda: next(rest, None) or os._exit(7)
