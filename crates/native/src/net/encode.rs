//! Parameters of a layer as values of a property list.

use super::NetError;
use crate::{Layer, Param, ParamKind};
use aneforge_mil::{Body, Constant, Operand, Operation};
use half::f16;
use plist::{Dictionary, Value};

/// A dictionary with its keys in order.
pub(super) fn dictionary(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Value::Dictionary(entries.into_iter().collect::<Dictionary>())
}

/// An integer value.
pub(super) fn int(value: usize) -> Value {
    Value::from(value as u64)
}

/// What stands in `Params`; kernels and integers of the unit are left out.
pub(super) fn params(body: &Body, operation: &Operation, layer: &Layer) -> Result<Vec<(String, Value)>, NetError> {
    let mut entries = Vec::new();
    for param in layer.params {
        let value = match param.kind {
            ParamKind::Table(columns) => table(body, operation, param.key, columns)?,
            ParamKind::Kernel | ParamKind::UnitInt => None,
            _ => value(body, operation, param.key, param)?,
        };
        entries.extend(value.map(|value| (param.key.to_string(), value)));
    }
    Ok(entries)
}

fn table(body: &Body, operation: &Operation, key: &str, columns: &[Param]) -> Result<Option<Value>, NetError> {
    let mut rows: Vec<Vec<(String, Value)>> = Vec::new();
    let mut present = false;
    for column in columns {
        let Some(value) = value(body, operation, &format!("{key}_{}", column.key), column)? else { continue };
        present = true;
        for (index, entry) in value.into_array().unwrap_or_default().into_iter().enumerate() {
            if rows.len() <= index {
                rows.push(Vec::new());
            }
            rows[index].push((column.key.to_string(), entry));
        }
    }
    Ok(present.then(|| Value::Array(rows.into_iter().map(dictionary).collect())))
}

/// The value of a parameter, `None` where it is left out.
pub(super) fn value(body: &Body, operation: &Operation, port: &str, param: &Param) -> Result<Option<Value>, NetError> {
    let operand = operation.op.port(port).and_then(|index| operation.arguments.get(index));
    let Some(Operand::One(id)) = operand else { return Ok(None) };
    let refuse = |problem: String| NetError::Body { name: operation.op.name.to_string(), problem: format!("{port} {problem}") };
    let Some(constant) = body.constant(*id) else { return Err(refuse("is not known when the program is compiled".to_string())) };
    if let Constant::Text(text) = constant {
        return Ok(Some(Value::from(text.as_str())));
    }
    let values = constant.to_array(body.ty(*id)).ok_or_else(|| refuse("cannot be read".to_string()))?.data;
    let first = values.first().copied().unwrap_or_default();
    let integer = |value: f64| Value::from(value as i64);
    Ok(Some(match param.kind {
        ParamKind::Flag => Value::Boolean(first != 0.0),
        ParamKind::Half => Value::from(u64::from(f16::from_f64(first).to_bits())),
        ParamKind::Real => Value::Real(first),
        ParamKind::Ints => Value::Array(values.iter().map(|&value| integer(value)).collect()),
        ParamKind::Words(words) => {
            let word = |&value: &f64| words.get(value as usize).map(|word| Value::from(*word));
            let texts: Option<Vec<Value>> = values.iter().map(word).collect();
            Value::Array(texts.ok_or_else(|| refuse(format!("{values:?} counts beyond {}", words.join(", "))))?)
        }
        _ => integer(first),
    }))
}
