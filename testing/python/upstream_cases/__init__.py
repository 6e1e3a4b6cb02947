"""Small graphs, as data, that upstream_mil.py has the Python package lower to MIL, by family."""

from __future__ import annotations

from .blocks import blocks
from .compressed import compressed
from .contractions import contractions
from .describe import Json
from .elementwise import activations, elementwise, masks
from .norms import norms, reductions
from .pictures import pictures
from .shapes import shapes
from .windows import windows_and_norms


def all_cases() -> list[Json]:
    """Every case, in a fixed order with fixed seeds (call once)."""
    families = (
        elementwise,
        contractions,
        windows_and_norms,
        shapes,
        blocks,
        activations,
        masks,
        reductions,
        norms,
        pictures,
        compressed,
    )
    return [entry for family in families for entry in family()]
