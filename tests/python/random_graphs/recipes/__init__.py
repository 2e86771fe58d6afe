# SPDX-License-Identifier: Apache-2.0
"""What random graphs are made of. A recipe appends one node, or a pattern of some, to a graph.

Each module lists its recipes in RECIPES; a recipe that stands twice comes twice as often.
"""

from random_graphs.recipes import (
    bodies,
    elementwise,
    indexing,
    linear,
    movement,
    patterns,
    quantized,
    reduction,
    windows,
)

ALL = tuple(
    recipe
    for module in (
        elementwise,
        movement,
        indexing,
        reduction,
        linear,
        windows,
        quantized,
        patterns,
        bodies,
    )
    for recipe in module.RECIPES
)
