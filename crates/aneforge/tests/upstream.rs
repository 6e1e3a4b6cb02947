//! MIL text and weight files of an independent writer, the Python package aneforge 0.4.0: they parse, run on every device, and mean
//! what our own lowering of the same graph means. `testing/python/upstream_mil.py` makes them, with expected values by numpy.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use aneforge::io::SafeTensors;
use aneforge::runtime::Program;
use aneforge::{Array, DType, Graph, Tensor, Window, compile, concat};
use aneforge_testkit::{difference, fixtures};
use common::{Inputs, keywords, options, resolved, run, written};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One graph of the package: its program, its description, its arrays and the expected result.
struct Case {
    name: String,
    folder: PathBuf,
    description: Value,
    arrays: SafeTensors,
    expected: Vec<f64>,
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

    fn array(&self, name: &str) -> Array {
        let shape = self.arrays.info(name).unwrap_or_else(|| panic!("{}: no array {name}", self.name)).ty.shape.clone();
        let weight = self.arrays.weight(name, &shape).unwrap();
        aneforge::mil::Constant::Weight(weight.clone()).to_array(weight.ty()).unwrap()
    }

    /// Values under the names of the description, in its order, which is that of the program's inputs.
    fn inputs(&self) -> Inputs {
        let names = self.description["inputs"].as_object().unwrap().keys();
        names.map(|name| (name.clone(), self.array(&format!("input.{name}")))).collect()
    }

    fn program(&self) -> Arc<Program> {
        Arc::new(Program::open(&self.folder).unwrap_or_else(|error| panic!("{}: {error}", self.name)))
    }

    /// What an fp16 device may show: the sum over its operators, scaled by the largest result.
    fn tolerance(&self) -> f64 {
        let nodes = self.description["nodes"].as_array().unwrap();
        nodes.iter().map(|node| tolerance(node["op"].as_str().unwrap())).sum()
    }
}

/// Tolerance of an operator under the package's name.
fn tolerance(op: &str) -> f64 {
    let ours = match op {
        "bmm" => "matmul",
        "muls" => "mul",
        "adds" => "add",
        "mean" => "reduce_mean",
        "sum" => "reduce_sum",
        // Four projections, two products and a softmax.
        "mha" => return 1e-2,
        same => same,
    };
    aneforge::core::op::find(ours).unwrap_or_else(|| panic!("no operator {ours}")).tolerance.max(1e-3)
}

fn cases() -> Option<Vec<Case>> {
    let folder = fixtures("upstream")?;
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("case.json").is_file())
        .collect();
    folders.sort();
    assert!(folders.len() >= 57, "only {} graphs of the package", folders.len());
    Some(folders.iter().map(|folder| Case::read(folder)).collect())
}

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|entry| entry.as_i64().unwrap()).collect()
}

/// The described graph, built with our own operators.
fn build(case: &Case) -> Tensor {
    let graph = Graph::new();
    let mut values: HashMap<&str, Tensor> = HashMap::new();
    for (name, input) in case.description["inputs"].as_object().unwrap() {
        let shape: Vec<usize> = integers(&input["shape"]).iter().map(|&extent| extent as usize).collect();
        values.insert(name, graph.input(name, DType::Fp16, &shape));
    }
    for node in case.description["nodes"].as_array().unwrap() {
        let id = node["id"].as_str().unwrap();
        let inputs: Vec<Tensor> =
            node["inputs"].as_array().unwrap().iter().map(|name| values[name.as_str().unwrap()].clone()).collect();
        let constant = |name: &str| {
            node["constants"].get(name)?;
            let array = case.array(&format!("{id}.{name}"));
            Some(graph.values(DType::Fp16, array.shape(), &array.data))
        };
        let result = apply(node["op"].as_str().unwrap(), &inputs, &constant, &node["attributes"]);
        values.insert(id, result.check().unwrap_or_else(|error| panic!("{}: {error}", case.name)).clone());
    }
    values[case.description["output"].as_str().unwrap()].clone()
}

fn apply(op: &str, inputs: &[Tensor], constant: &dyn Fn(&str) -> Option<Tensor>, attributes: &Value) -> Tensor {
    let x = &inputs[0];
    let y = || inputs.get(1).cloned().or_else(|| constant("y")).unwrap();
    let int = |name: &str| attributes[name].as_i64().unwrap();
    let ints = |name: &str| integers(&attributes[name]);
    let float = |name: &str| attributes[name].as_f64().unwrap();
    match op {
        "relu" => x.relu(),
        "tanh" => x.tanh(),
        "sigmoid" => x.sigmoid(),
        "gelu" => x.gelu("EXACT"),
        "exp" => x.exp(),
        "erf" => x.erf(),
        "square" => x.square(),
        "sqrt" => x.sqrt(),
        "rsqrt" => x.rsqrt(float("eps")),
        "softplus" => x.softplus(),
        "round" => x.round(),
        "floor" => x.floor(),
        "add" => x + &y(),
        "sub" => x - &y(),
        "mul" => x * &y(),
        "real_div" => x / &y(),
        "maximum" => x.maximum(&y()),
        "minimum" => x.minimum(&y()),
        "greater" => x.greater(&y()),
        "select" => x.select(&inputs[1], &inputs[2]),
        "muls" => x.muls(float("scalar")),
        "adds" => x.adds(float("scalar")),
        "matmul" => x.matmul(&constant("weight").unwrap()),
        "bmm" => x.matmul(&y()),
        "linear" => x.linear(&constant("weight").unwrap(), constant("bias").as_ref()),
        "conv" => {
            let window = Window::default().stride(int("stride")).padding(int("pad")).groups(int("groups"));
            x.conv(&constant("weight").unwrap(), constant("bias").as_ref(), &window)
        }
        "max_pool" => x.max_pool(&Window::square(int("k")).stride(int("stride")).padding(int("pad"))),
        "avg_pool" => x.avg_pool(&Window::square(int("k")).stride(int("stride")).padding(int("pad"))),
        "mean" => x.mean(ints("axes"), true),
        "sum" => x.sum(ints("axes"), true),
        "softmax" => x.softmax(int("axis")),
        "batch_norm" => {
            let [mean, variance, gamma, beta] = ["mean", "var", "gamma", "beta"].map(constant);
            x.batch_norm(&mean.unwrap(), &variance.unwrap(), gamma.as_ref(), beta.as_ref(), float("eps"))
        }
        "layer_norm" => x.layer_norm(-1, constant("gamma").as_ref(), constant("beta").as_ref(), float("eps")),
        "l2_norm" => x.l2_norm(int("axis"), float("eps")),
        "reshape" => x.reshape(&ints("shape")),
        "transpose" => x.transpose(&ints("perm")),
        "concat" => concat(inputs, int("axis")),
        "slice_by_size" => x.slice_by_size(&ints("begin"), &ints("size")),
        "expand_dims" => x.expand_dims(ints("axes")),
        "squeeze" => x.squeeze(ints("axes")),
        "split" => x.split(int("num_splits") as usize, int("axis"))[int("part") as usize].clone(),
        "mha" => {
            let parts: Vec<Tensor> = ["Wq", "bq", "Wk", "bk", "Wv", "bv", "Wo", "bo"].map(|name| constant(name).unwrap()).to_vec();
            let pair = |index: usize| (&parts[2 * index], Some(&parts[2 * index + 1]));
            let heads = int("n_heads") as usize;
            let weights = aneforge::core::Heads { query: pair(0), key: pair(1), value: pair(2), output: pair(3), heads };
            aneforge::mha(x, x, &weights, constant("mask").as_ref())
        }
        other => panic!("no builder for {other}"),
    }
}

/// Inputs under the names that the package's program has for them: same order, other names.
fn renamed(program: &Program, inputs: &Inputs) -> Inputs {
    let body = program.body();
    assert_eq!(body.inputs.len(), inputs.len());
    body.inputs.iter().zip(inputs).map(|(&id, (_, array))| (body.value(id).name.clone(), array.clone())).collect()
}

#[test]
fn programs_of_the_package_give_what_numpy_gives_on_every_device() {
    let Some(cases) = cases() else { return };
    let mut faults = Vec::new();
    for case in &cases {
        let program = case.program();
        let inputs = renamed(&program, &case.inputs());
        for device in ["reference", "cpu", "emulator:m1", "emulator:m5"] {
            let got = &run(device, &program, &inputs)[0];
            let found = difference(&got.data, &case.expected);
            // f64 throughout: what is left is the rounding of constants in the file and of the result.
            let allowed = match device {
                "reference" => REFERENCE_TOLERANCE,
                "cpu" => case.tolerance(),
                _ => case.tolerance().max(ENGINE_TABLES),
            };
            println!("{:24} {device:12} {:.2e} of {allowed:.2e}", case.name, found.worst);
            if found.worst > allowed {
                faults.push(format!("{} on {device}: {:.3e} > {allowed:.1e} at {}", case.name, found.worst, found.at));
            }
        }
        let zeros = &run("null", &program, &inputs)[0];
        assert_eq!(zeros.data.len(), case.expected.len());
        assert!(zeros.data.iter().all(|&value| value == 0.0));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// What the engine's tables of straight pieces, as the emulator models them, are off by.
const ENGINE_TABLES: f64 = 1e-2;

/// fp16 rounding of a result (2^-11) and of an operator's constants.
const REFERENCE_TOLERANCE: f64 = 1.5e-3;

#[test]
fn our_lowering_of_the_same_graph_means_the_same() {
    let Some(cases) = cases() else { return };
    let (mut faults, mut same) = (Vec::new(), 0);
    for case in &cases {
        let theirs = case.program();
        let (inputs, output) = (case.inputs(), build(case));
        let their_inputs = renamed(&theirs, &inputs);
        for target in ["generic", "m1"] {
            let compiled =
                compile(&[("result", &output)], &options(target)).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            let ours = written(&compiled).program;
            let equal_sequences = keywords(ours.body()) == keywords(theirs.body());
            same += usize::from(equal_sequences);
            for device in ["reference", "cpu"] {
                let (mine, other) = (&run(device, &ours, &inputs)[0], &run(device, &theirs, &their_inputs)[0]);
                assert_eq!(mine.ty, other.ty, "{}", case.name);
                let found = difference(&mine.data, &other.data);
                let allowed = match device {
                    "reference" if equal_sequences && !FOLDED.contains(&case.name.as_str()) => 0.0,
                    "reference" => REFERENCE_TOLERANCE,
                    _ => case.tolerance(),
                };
                println!("{:24} {target:8} {device:10} {:.2e} of {allowed:.2e} {equal_sequences}", case.name, found.worst);
                if found.worst > allowed {
                    faults.push(format!(
                        "{} for {target} on {device}: {:.3e} > {allowed:.1e}; ours {:?}, theirs {:?}",
                        case.name,
                        found.worst,
                        keywords(ours.body()),
                        keywords(theirs.body())
                    ));
                }
            }
        }
    }
    println!("{same} of {} lowerings have the package's own sequence of operators", 2 * cases.len());
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Graphs whose constants each side folds for itself, rounding at other places.
const FOLDED: &[&str] = &[];

#[test]
fn weight_files_of_the_package_list_every_blob_though_nothing_is_padded() {
    let Some(cases) = cases() else { return };
    let mut unaligned = 0;
    for case in &cases {
        let file = aneforge::mil::BlobFile::open(case.folder.join("weights.bin")).unwrap();
        let views: Vec<_> = file.iter().collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!(views.len(), file.count() as usize, "{}", case.name);
        unaligned += views.iter().filter(|view| !view.offset.is_multiple_of(64)).count();
        let text = std::fs::read_to_string(case.folder.join("model.mil")).unwrap();
        let body = resolved(&text, &case.folder);
        assert!(body.verify().is_ok(), "{}", case.name);
    }
    assert!(unaligned > 0, "the package pads after all: this test shows nothing");
}
