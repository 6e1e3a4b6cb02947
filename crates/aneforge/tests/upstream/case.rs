//! The graphs as `testing/python/upstream_mil.py` writes them.

use crate::common::Inputs;
use aneforge::core::op::find;
use aneforge::io::SafeTensors;
use aneforge::runtime::Program;
use aneforge::{Array, DType};
use aneforge_testkit::fixtures;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One graph of the package: its program, its description, its arrays and the expected result.
pub struct Case {
    pub name: String,
    pub folder: PathBuf,
    pub description: Value,
    arrays: SafeTensors,
    pub expected: Vec<f64>,
}

impl Case {
    fn read(folder: &Path) -> Self {
        let description: Value = serde_json::from_slice(&std::fs::read(folder.join("case.json")).unwrap()).unwrap();
        let arrays = SafeTensors::open(folder.join("arrays.safetensors")).unwrap();
        let words = arrays.bytes("expected").unwrap().chunks_exact(8);
        let expected = words.map(|word| f64::from_le_bytes(word.try_into().unwrap())).collect();
        Self {
            name: description["name"].as_str().unwrap().to_string(),
            folder: folder.to_path_buf(),
            description,
            arrays,
            expected,
        }
    }

    pub fn array(&self, name: &str) -> Array {
        let shape = self.arrays.info(name).unwrap_or_else(|| panic!("{}: no array {name}", self.name)).ty.shape.clone();
        let weight = self.arrays.weight(name, &shape).unwrap();
        aneforge::mil::Constant::Weight(weight.clone()).to_array(weight.ty()).unwrap()
    }

    /// Values under the names of the description, in its order, which is that of the program's inputs.
    pub fn inputs(&self) -> Inputs {
        let names = self.description["inputs"].as_object().unwrap().keys();
        names
            .map(|name| {
                let mut array = self.array(&format!("input.{name}"));
                array.ty.dtype = self.input_type(name);
                (name.clone(), array)
            })
            .collect()
    }

    pub fn input_type(&self, name: &str) -> DType {
        match self.description["inputs"][name]["dtype"].as_str() {
            Some("uint8") => DType::UInt8,
            _ => DType::Fp16,
        }
    }

    /// Names of the package's own operators that it lowered the graph to.
    pub fn operators(&self) -> BTreeSet<String> {
        let names = self.description["fused"].as_array().unwrap();
        names.iter().map(|name| name.as_str().unwrap().to_string()).collect()
    }

    /// How the package compressed the weight, if it did.
    pub fn compression(&self) -> Option<&str> {
        self.description["compress"]["compress"].as_str()
    }

    /// Whether the program keeps to MIL: the package gives blocks of every weight a scale of two axes, where the operator asks for
    /// as many as the weight has.
    pub fn lawful(&self) -> bool {
        self.compression() != Some("blockwise") || self.operators().contains("matmul")
    }

    pub fn program(&self) -> Arc<Program> {
        Arc::new(Program::open(&self.folder).unwrap_or_else(|error| panic!("{}: {error}", self.name)))
    }

    /// What an fp16 device may show: the sum over its operators, scaled by the largest result.
    pub fn tolerance(&self) -> f64 {
        let nodes = self.description["nodes"].as_array().unwrap();
        nodes.iter().map(|node| tolerance(node["op"].as_str().unwrap())).sum()
    }
}

/// Tolerance of an operator under the package's name.
fn tolerance(op: &str) -> f64 {
    let ours = match op {
        // Bytes become numbers, are scaled and shifted.
        "image_input" => "mul",
        // Four projections, two products and a softmax.
        "mha" => return 1e-2,
        same => same,
    };
    find(ours).unwrap_or_else(|| panic!("no operator {ours}")).tolerance.max(1e-3)
}

/// All graphs of the package, by name; none where the fixtures are not made.
pub fn cases() -> Option<Vec<Case>> {
    let folder = fixtures("upstream")?;
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("case.json").is_file())
        .collect();
    folders.sort();
    Some(folders.iter().map(|folder| Case::read(folder)).collect())
}
