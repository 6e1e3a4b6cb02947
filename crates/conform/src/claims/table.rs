//! The data files: tab-separated, one statement a line, `-` for nothing, `#` before remarks.

use super::{Claim, Route, Source, Verdict};
use aneforge_core::Family;

const COLUMNS: &str = "operator\tfamilies\troute\tdtype\tshape\tclaim\tfigure\tnote\tsource";
const SOURCE_COLUMNS: &str = "key\tcitation\ttried";

/// A data file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {problem}")]
pub struct ClaimError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// Statements of a file.
pub(super) fn parse(file: &str, text: &str, sources: &[Source]) -> Result<Vec<Claim>, ClaimError> {
    rows(file, text, COLUMNS)?.into_iter().map(|(line, fields)| claim(file, line, &fields, sources)).collect()
}

/// Sources of a file.
pub(super) fn parse_sources(file: &str, text: &str) -> Result<Vec<Source>, ClaimError> {
    let mut sources: Vec<Source> = Vec::new();
    for (line, fields) in rows(file, text, SOURCE_COLUMNS)? {
        let fault = |problem: String| ClaimError { file: file.to_string(), line, problem };
        let [key, citation, tried] = fields.as_slice() else { continue };
        if sources.iter().any(|source| source.key == *key) {
            return Err(fault(format!("source {key} stands here twice")));
        }
        let tried = tried.split(' ').map(|word| family(word).ok_or_else(|| fault(format!("{word:?} is no family"))));
        sources.push(Source {
            key: (*key).to_string(),
            citation: (*citation).to_string(),
            tried: tried.collect::<Result<_, _>>()?,
        });
    }
    Ok(sources)
}

/// Fields of each line with its number, as many as there are columns.
fn rows<'a>(file: &str, text: &'a str, columns: &str) -> Result<Vec<(usize, Vec<&'a str>)>, ClaimError> {
    let fault = |line: usize, problem: String| ClaimError { file: file.to_string(), line, problem };
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#'));
    match lines.next() {
        Some((_, head)) if head == columns => {}
        other => return Err(fault(other.map_or(1, |(line, _)| line), format!("the columns are {columns:?}"))),
    }
    let width = columns.split('\t').count();
    lines
        .map(|(line, text)| {
            let fields: Vec<&str> = text.split('\t').collect();
            match fields.len() == width && fields.iter().all(|field| !field.is_empty()) {
                true => Ok((line, fields)),
                false => Err(fault(line, format!("{width} fields are wanted, none of them empty"))),
            }
        })
        .collect()
}

fn claim(file: &str, line: usize, fields: &[&str], sources: &[Source]) -> Result<Claim, ClaimError> {
    let fault = |problem: String| ClaimError { file: file.to_string(), line, problem };
    let &[operator, families, route, dtype, shape, verdict, figure, note, source] = fields else {
        return Err(fault("too few fields".to_string()));
    };
    let optional = |field: &str| (field != "-").then(|| field.to_string());
    let (first, last) = families.split_once('-').unwrap_or((families, families));
    let (first, last) = family(first)
        .zip(family(last))
        .filter(|(first, last)| first <= last)
        .ok_or_else(|| fault(format!("{families:?} is no family and no range of them")))?;
    let figure = match figure {
        "-" => None,
        text => {
            let value: Option<f64> = text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
            Some(value.ok_or_else(|| fault(format!("{text:?} is no relative error")))?)
        }
    };
    if !sources.iter().any(|known| known.key == source) {
        return Err(fault(format!("source {source:?} is not listed in sources.tsv")));
    }
    Ok(Claim {
        operator: operator.to_string(),
        first,
        last,
        route: Route::parse(route).ok_or_else(|| fault(format!("{route:?} is no route")))?,
        dtype: optional(dtype),
        shape: optional(shape),
        verdict: Verdict::parse(verdict).ok_or_else(|| fault(format!("{verdict:?} is no claim")))?,
        figure,
        note: optional(note),
        source: source.to_string(),
        measured: false,
    })
}

/// A family by its name, such as `A13`.
pub(super) fn family(word: &str) -> Option<Family> {
    super::FAMILIES.into_iter().find(|family| family.to_string() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Vec<Source> {
        vec![Source { key: "s".to_string(), citation: "S".to_string(), tried: vec![Family::A13] }]
    }

    #[test]
    fn a_row_is_read_field_by_field() {
        let text = format!("# remark\n{COLUMNS}\nrelu\tA14-A16\te5rt\tfp16\twide\tcomputes\t1e-3\twords\ts\n");
        let claims = parse("f", &text, &sources()).unwrap_or_default();
        assert_eq!(claims.len(), 1);
        let claim = &claims[0];
        assert!(claim.covers(Family::A15) && !claim.covers(Family::A13) && !claim.covers(Family::A17));
        assert_eq!((claim.figure, claim.dtype.as_deref(), claim.shape.as_deref()), (Some(1e-3), Some("fp16"), Some("wide")));
        assert!(claim.is_limit() && claim.verdict.on_engine());
    }

    #[test]
    fn a_fault_names_file_line_and_field() {
        let good = ["relu", "A13", "e5rt", "-", "-", "native", "-", "-", "s"];
        for (field, bad) in
            [(1, "A9"), (1, "A16-A14"), (2, "usb"), (5, "perhaps"), (6, "-1"), (6, "nan"), (6, "x"), (8, "nobody"), (0, "")]
        {
            let mut fields = good;
            fields[field] = bad;
            let text = format!("{COLUMNS}\n{}\n", fields.join("\t"));
            let error = parse("claims.tsv", &text, &sources()).map(|_| ()).map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|text| text.starts_with("claims.tsv, line 2: ")), "{field} {bad}: {error:?}");
        }
        assert!(parse("f", "", &sources()).is_err() && parse("f", "operator\n", &sources()).is_err());
    }
}
