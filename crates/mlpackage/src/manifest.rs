//! `Manifest.json` of a package: which of its files is the model.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Name of the file in the package.
pub const MANIFEST: &str = "Manifest.json";
/// Folder of the items.
pub const DATA: &str = "Data";
/// The model file below [`DATA`], where Apple's writer puts it.
pub const MODEL: &str = "com.apple.CoreML/model.mlmodel";
/// The folder of weights below [`DATA`].
pub const WEIGHTS: &str = "com.apple.CoreML/weights";
/// Version of the format.
const VERSION: &str = "1.0.0";
/// Keys of the two items. They only have to differ; fixed ones make equal models equal packages.
const MODEL_KEY: &str = "8D4F1B6A-52C9-4E0B-9A37-3C6E1F70A2D1";
const WEIGHTS_KEY: &str = "E17A9C04-6B3D-4F58-8E21-90D5B7C4F3A6";

#[derive(Serialize, Deserialize)]
struct Manifest {
    #[serde(rename = "fileFormatVersion")]
    version: String,
    #[serde(rename = "itemInfoEntries")]
    items: BTreeMap<String, Item>,
    #[serde(rename = "rootModelIdentifier")]
    root: String,
}

#[derive(Serialize, Deserialize)]
struct Item {
    #[serde(default)]
    author: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    name: String,
    path: String,
}

/// The manifest of a package with the usual two items.
pub fn text() -> Result<String, serde_json::Error> {
    let item = |description: &str, name: &str, path: &str| Item {
        author: "com.apple.CoreML".to_string(),
        description: description.to_string(),
        name: name.to_string(),
        path: path.to_string(),
    };
    let items = [
        (MODEL_KEY.to_string(), item("CoreML Model Specification", "model.mlmodel", MODEL)),
        (WEIGHTS_KEY.to_string(), item("CoreML Model Weights", "weights", WEIGHTS)),
    ];
    serde_json::to_string_pretty(&Manifest { version: VERSION.to_string(), items: items.into(), root: MODEL_KEY.to_string() })
}

/// The place of the model file below the package that a manifest names, or what is wrong with the manifest.
pub fn model_path(text: &[u8]) -> Result<PathBuf, String> {
    let manifest: Manifest = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if manifest.version != VERSION {
        return Err(format!("has fileFormatVersion {:?}; only {VERSION} is known", manifest.version));
    }
    let root = manifest.items.get(&manifest.root);
    let item = root.ok_or_else(|| format!("names {:?} as root model but has no such item", manifest.root))?;
    let path = Path::new(&item.path);
    if path.components().any(|part| !matches!(part, Component::Normal(_))) || item.path.is_empty() {
        return Err(format!("names the file {:?} outside of the package", item.path));
    }
    Ok(Path::new(DATA).join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_manifest_names_the_place_of_the_model() {
        let text = text().unwrap_or_default();
        assert_eq!(model_path(text.as_bytes()), Ok(Path::new(DATA).join(MODEL)));
    }

    #[test]
    fn paths_out_of_the_package_are_refused() {
        for path in ["../model.mlmodel", "/etc/passwd", ""] {
            let text = text().unwrap_or_default().replace(MODEL, path);
            assert!(model_path(text.as_bytes()).is_err_and(|problem| problem.contains("outside")), "{path}");
        }
    }
}
