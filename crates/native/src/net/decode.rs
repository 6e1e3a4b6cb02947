//! Parameters of a layer from values of a property list.

use super::Fault;
use super::node::{Node, Placed};
use crate::{Param, ParamKind};
use aneforge_mil::{Constant, DType, TensorType};
use half::f16;

/// A constant of a body.
pub(super) type Decoded = (TensorType, Constant);

fn scalar(dtype: DType, value: f64) -> Decoded {
    (TensorType::new(dtype, []), Constant::Values(vec![value]))
}

fn list(values: Vec<f64>) -> Decoded {
    (TensorType::new(DType::Int32, [values.len()]), Constant::Values(values))
}

/// The value of a parameter that is no table and no kernel.
pub(super) fn value(node: &Node<'_>, kind: ParamKind) -> Placed<Decoded> {
    Ok(match kind {
        ParamKind::Flag => scalar(DType::Bool, f64::from(u8::from(node.flag()?))),
        ParamKind::Word(_) => (TensorType::new(DType::String, []), Constant::Text(node.text()?.to_string())),
        ParamKind::Real => scalar(DType::Fp32, f64::from(node.real()? as f32)),
        ParamKind::Half => scalar(DType::Fp16, half(node)?),
        ParamKind::Ints => list(node.array()?.iter().map(|node| Ok(node.int()? as f64)).collect::<Placed<_>>()?),
        ParamKind::Words(words) => list(node.array()?.iter().map(|node| place(node, words)).collect::<Placed<_>>()?),
        _ => scalar(DType::Int32, node.int()? as f64),
    })
}

/// A number that stands there as its fp16 bits.
fn half(node: &Node<'_>) -> Placed<f64> {
    let bits = node.int()?;
    match u16::try_from(bits).map(f16::from_bits) {
        Ok(value) if value.is_finite() => Ok(value.to_f64()),
        _ => node.fail(Fault::Value(format!("{bits} is not the bits of a finite fp16 number (1.0 is 15360)"))),
    }
}

fn place(node: &Node<'_>, words: &[&str]) -> Placed<f64> {
    let text = node.text()?;
    match words.iter().position(|word| *word == text) {
        Some(place) => Ok(place as f64),
        None => node.fail(Fault::Value(format!("{text:?} is none of {}", words.join(", ")))),
    }
}

/// One constant for each column.
pub(super) fn table(node: &Node<'_>, columns: &[Param]) -> Placed<Vec<Decoded>> {
    let keys: Vec<&str> = columns.iter().map(|column| column.key).collect();
    let mut values = vec![Vec::new(); columns.len()];
    for row in node.array()? {
        let row = row.map()?;
        row.only(&keys)?;
        for (column, values) in columns.iter().zip(&mut values) {
            let cell = row.get(column.key)?;
            values.push(match column.kind {
                ParamKind::Words(words) => place(&cell, words)?,
                _ => cell.int()? as f64,
            });
        }
    }
    Ok(values.into_iter().map(list).collect())
}
