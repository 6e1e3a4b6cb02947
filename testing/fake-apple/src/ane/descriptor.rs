//! `_ANEInMemoryModelDescriptor`: a program's text and weights.

use crate::diagnostics::diagnostic;
use crate::foundation::{bytes_of, entries, number_of, string, text_of, value};
use crate::interface::ProgramKind;
use crate::objc::{ClassSpec, Id, Method, Sel, Strong, method};
use crate::settings::{self, Profile};
use sha2::{Digest, Sha256};

/// Body of a descriptor.
pub struct Descriptor {
    /// Form of the program.
    pub kind: ProgramKind,
    /// Program text or net.plist.
    pub text: Strong,
    /// Path in the folder and bytes of each weight file.
    pub weights: Vec<(String, Strong)>,
    /// SHA-256 of the text, of the options and of the weights.
    pub identifier: String,
}

fn hex(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_ref());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The path of a weight file in the folder. Espresso refuses absolute paths and ones that leave the folder.
fn weight_path(kind: ProgramKind, key: &str) -> Option<String> {
    let path = match kind {
        ProgramKind::Mil => key.strip_prefix("@model_path/")?,
        ProgramKind::Network => key,
    };
    let inside = !path.is_empty() && !path.starts_with('/') && path.split('/').all(|part| !part.is_empty() && part != "..");
    inside.then(|| path.to_string())
}

fn weight(kind: ProgramKind, key: Id, entry: Id) -> Result<(String, Strong), String> {
    let name = text_of(key).ok_or("a key is no string")?;
    let path = weight_path(kind, name).ok_or_else(|| format!("{name:?} is no path below @model_path/"))?;
    let offset =
        value(entry, "offset").and_then(|offset| number_of(offset.id())).ok_or_else(|| format!("{name:?} has no offset"))?;
    if !matches!(offset.signed(), 0 | 64) {
        return Err(format!("{name:?} has offset {offset}"));
    }
    let data = value(entry, "data").filter(|data| bytes_of(data.id()).is_some());
    Ok((path, data.ok_or_else(|| format!("{name:?} has no data"))?))
}

fn describe(kind: ProgramKind, text: Id, weights: Id, options: Id) -> Result<Descriptor, String> {
    // Text as a string in the place of data gives nil or crashes (maderix/ANE, Orion).
    let bytes = bytes_of(text).ok_or("the program is no NSData")?;
    let found = match entries(weights) {
        Some(found) => found,
        // Whether nil stands for no weights is disputed: maderix/ANE passes it, Orion forbids it.
        None if weights.is_nil() && settings::current().profile == Profile::Agreed => Vec::new(),
        None => return Err("the weights are no dictionary".to_string()),
    };
    let mut files = Vec::new();
    for (key, entry) in &found {
        files.push(weight(kind, key.id(), entry.id())?);
    }
    files.sort_by(|one, other| one.0.cmp(&other.0));
    let options = if options.is_nil() { &[] } else { bytes_of(options).ok_or("the options are no NSData")? };
    let weights = files.iter().flat_map(|(path, data)| [path.as_bytes(), bytes_of(data.id()).unwrap_or_default()]);
    // maderix/ANE issue 24: three hashes, joined by underscores. What exactly is hashed of the weights is not reported.
    let identifier = format!("{}_{}_{}", hex([bytes]), hex([options]), hex(weights));
    Ok(Descriptor { kind, text: Strong::keep(text), weights: files, identifier })
}

fn make(kind: ProgramKind, text: Id, weights: Id, options: Id) -> Id {
    match describe(kind, text, weights, options) {
        Ok(body) => Id::make("_ANEInMemoryModelDescriptor", body).autoreleased(),
        Err(problem) => {
            diagnostic(format!("_ANEInMemoryModelDescriptor: {problem}"));
            Id::NIL
        }
    }
}

extern "C" fn with_text(_: Id, _: Sel, text: Id, weights: Id, options: Id) -> Id {
    make(ProgramKind::Mil, text, weights, options)
}

extern "C" fn with_network(_: Id, _: Sel, network: Id, weights: Id, options: Id) -> Id {
    make(ProgramKind::Network, network, weights, options)
}

extern "C" fn identifier(this: Id, _: Sel) -> Id {
    this.body::<Descriptor>().map_or(Id::NIL, |body| string(&body.identifier).autoreleased())
}

extern "C" fn is_text(this: Id, _: Sel) -> bool {
    this.body::<Descriptor>().is_some_and(|body| body.kind == ProgramKind::Mil)
}

static CLASS_METHODS: &[Method] = &[
    method!("modelWithMILText:weights:optionsPlist:", with_text, 3),
    method!("modelWithNetworkDescription:weights:optionsPlist:", with_network, 3),
];

static METHODS: &[Method] = &[method!("hexStringIdentifier", identifier, 0), method!("isMILModel", is_text, 0)];

pub(super) static SPECS: &[ClassSpec] =
    &[ClassSpec { name: "_ANEInMemoryModelDescriptor", superclass: "NSObject", class_methods: CLASS_METHODS, methods: METHODS }];
