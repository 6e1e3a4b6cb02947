//! Shapes of inputs: fixed ones, and flexible ones that a default or the caller binds.

use super::value::DeclaredType;
use crate::proto::{self, FeatureKind, Flexibility};
use aneforge_mil::{DisplayShape, TensorType};

/// The type of an input under the shape that the caller gives, or else its default; or what is wrong.
pub fn bind(
    declared: &DeclaredType,
    feature: Option<&proto::FeatureDescription>,
    given: Option<&[usize]>,
) -> Result<TensorType, String> {
    let array = match feature.and_then(|feature| feature.ty.as_ref()?.kind.as_ref()) {
        Some(FeatureKind::Array(array)) => Some(array),
        Some(FeatureKind::Image(image)) if given.is_none() && declared.fixed().is_none() => {
            return Err(format!("is an image of {} by {} without a fixed shape; give it a shape", image.width, image.height));
        }
        _ => None,
    };
    if let Some(given) = given {
        let ty = TensorType::new(declared.dtype, given);
        if !declared.admits(&ty) {
            return Err(format!("is declared {declared}, which shape {} does not fit", DisplayShape(given)));
        }
        return match array.and_then(|array| array.flexibility.as_ref()).map(|allowed| refused(allowed, given)) {
            Some(Some(problem)) => Err(problem),
            _ => Ok(ty),
        };
    }
    if let Some(ty) = declared.fixed() {
        return Ok(ty);
    }
    let default: Option<Vec<usize>> =
        array.and_then(|array| array.shape.iter().map(|&extent| usize::try_from(extent).ok()).collect());
    let default = default.map(|shape| TensorType::new(declared.dtype, shape)).filter(|ty| declared.admits(ty));
    default.ok_or_else(|| format!("is declared {declared} and has no default shape; give it a shape"))
}

/// What the description has against a shape.
fn refused(allowed: &Flexibility, given: &[usize]) -> Option<String> {
    match allowed {
        Flexibility::Range(range) => {
            let within = |(size, &extent): (&proto::SizeRange, &usize)| {
                extent as u64 >= size.lower && (size.upper < 0 || extent as u64 <= size.upper as u64)
            };
            let fits = range.ranges.len() == given.len() && range.ranges.iter().zip(given).all(within);
            let limit = |size: &proto::SizeRange| match size.upper {
                ..0 => format!("{} or more", size.lower),
                upper => format!("{} to {upper}", size.lower),
            };
            let limits = || range.ranges.iter().map(limit).collect::<Vec<_>>().join(", ");
            (!fits).then(|| format!("takes extents of {}, not {}", limits(), DisplayShape(given)))
        }
        Flexibility::Enumerated(shapes) => {
            let same = |shape: &proto::Shape| {
                shape.shape.iter().map(|&extent| usize::try_from(extent).ok()).eq(given.iter().map(|&e| Some(e)))
            };
            let known = || shapes.shapes.iter().map(|shape| format!("{:?}", shape.shape)).collect::<Vec<_>>().join(" or ");
            (!shapes.shapes.iter().any(same)).then(|| format!("takes shape {}, not {}", known(), DisplayShape(given)))
        }
    }
}
