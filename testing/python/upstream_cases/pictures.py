"""Resizing, warping and rearranging of pictures, and pictures of bytes."""

from __future__ import annotations

from .describe import Json, array, case, node


def pictures() -> list[Json]:
    """Sides that differ, so that a swap of rows and columns shows."""
    image = [1, 2, 4, 6]
    # A turn and a shift; some corners lie outside of the picture.
    transform = {"transform": array([1, 6], -0.9, 0.9)}
    return [
        case("upsample", {"x": array(image)}, node("upsample", ["x"], scale=2)),
        case(
            "upsample_bilinear",
            {"x": array(image)},
            node("upsample_bilinear", ["x"], scale=2, align_corners=False),
        ),
        case(
            "upsample_bilinear_corners",
            {"x": array(image)},
            node("upsample_bilinear", ["x"], scale=2, align_corners=True),
        ),
        case(
            "resize_nearest_neighbor",
            {"x": array(image)},
            node("resize_nearest_neighbor", ["x"], target_h=8, target_w=18),
        ),
        case(
            "resize_bilinear",
            {"x": array(image)},
            node("resize_bilinear", ["x"], target_h=8, target_w=12, align_corners=False),
        ),
        case(
            "resize_bilinear_corners",
            {"x": array(image)},
            node("resize_bilinear", ["x"], target_h=7, target_w=11, align_corners=True),
        ),
        case(
            "affine",
            {"x": array([1, 2, 6, 5])},
            node("affine", ["x"], transform, output_h=4, output_w=7, align_corners=True),
        ),
        case(
            "crop",
            {"x": array([1, 2, 7, 8])},
            node("crop", ["x"], top=1, bottom=2, left=0, right=3),
        ),
        case("pixel_shuffle", {"x": array([1, 8, 3, 4])}, node("pixel_shuffle", ["x"], r=2)),
        case("pixel_unshuffle", {"x": array([1, 2, 4, 6])}, node("pixel_unshuffle", ["x"], r=2)),
        case(
            "space_to_depth",
            {"x": array([1, 2, 4, 6])},
            node("space_to_depth", ["x"], block_size=2),
        ),
        case(
            "depth_to_space",
            {"x": array([1, 8, 3, 4])},
            node("depth_to_space", ["x"], block_size=2),
        ),
        case(
            "cast",
            {"x": array([1, 3, 4, 5], 0.0, 255.0, dtype="uint8")},
            node("image_input", ["x"], scale=0.03125, bias=-1.5),
        ),
    ]
