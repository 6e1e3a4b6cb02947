"""Weights that the package's compiler compresses, in each way and at each operator that it takes."""

from __future__ import annotations

from .describe import Json, array, case, node

# A codebook of 16 values is off by more than the compiler's default of 0.05 on random weights.
INT4 = {"compress": "int4", "compress_atol": 0.2}
BLOCKS = {"compress": "blockwise", "block_size": 16}


def weight(shape: list[int], mode: str) -> Json:
    """Rows of 32 or 36 values; half of them and more are zero where the mode stores the others alone."""
    return {"weight": array(shape, kept=0.3) if mode == "sparse" else array(shape)}


def compressed() -> list[Json]:
    """One weight in each graph, which the text names by the way it is compressed."""
    cases = []
    for mode in ("int8", "int4", "sparse", "blockwise"):
        options = {"int4": INT4, "blockwise": BLOCKS}.get(mode, {"compress": mode})
        cases.append(
            case(
                f"matmul_{mode}",
                {"x": array([5, 32])},
                node("linear", ["x"], weight([12, 32], mode)),
                **options,
            )
        )
        cases.append(
            case(
                f"conv_{mode}",
                {"x": array([1, 4, 6, 7])},
                node("conv", ["x"], weight([6, 4, 3, 3], mode), stride=1, pad=1, groups=1),
                **options,
            )
        )
        if mode != "sparse":
            cases.append(
                case(
                    f"bmm_w_{mode}",
                    {"x": array([3, 5, 16])},
                    node("bmm_w", ["x"], weight([3, 16, 8], mode)),
                    **options,
                )
            )
    return cases
