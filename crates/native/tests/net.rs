//! Networks on disk: what is written reads back the same, what is wrong is refused with its place, and nothing panics.
#![allow(clippy::unwrap_used)]

mod support;

use aneforge_mil::op::Case;
use aneforge_mil::{Array, Body, DType, Operand, Output, TensorType};
use aneforge_native::layer::{ELEMENT_WISE, NEURON, SORT, layers};
use aneforge_native::net::{Fault, NET, NetError, WEIGHTS, read, write};
use plist::Value;
use std::path::Path;
use support::{evaluate, single};

fn folder(net: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(NET), net).unwrap();
    std::fs::write(folder.path().join(WEIGHTS[0]), b"").unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_net_written_by_hand_means_what_it_says() {
    let text = include_bytes!("nets/sum_tanh.plist");
    let body = read(folder(text).path()).unwrap();
    let row = |values: Vec<f64>| Array::new(DType::Fp16, [1, 1, 1, 8], values);
    let (a, b): (Vec<f64>, Vec<f64>) = (0..8).map(|i| (f64::from(i) * 0.25, 1.0 - f64::from(i) * 0.5)).unzip();
    let got = evaluate(&body, &[row(a.clone()), row(b.clone())]);
    let wanted: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (a + b).tanh()).collect();
    assert_eq!(got[0].data, wanted);
    assert_eq!((body.name.as_str(), body.outputs[0].name.as_str()), ("demo", "y"));
}

#[test]
fn every_layer_reads_back_as_it_was_written_xml_and_binary() {
    for layer in layers() {
        for case in layer.op.cases {
            let (body, inputs) = single(&layer.op, case);
            let folder = tempfile::tempdir().unwrap();
            write(&body, folder.path()).unwrap_or_else(|error| panic!("{} {}: {error}", layer.op.name, case.name));
            assert!(names(folder.path()).iter().all(|name| name == NET || WEIGHTS.contains(&name.as_str())));
            for binary in [false, true] {
                if binary {
                    let value = Value::from_file(folder.path().join(NET)).unwrap();
                    value.to_file_binary(folder.path().join(NET)).unwrap();
                }
                let again = read(folder.path()).unwrap_or_else(|error| panic!("{} {}: {error}", layer.op.name, case.name));
                assert!(body.same_computation(&again), "{} {}", layer.op.name, case.name);
                assert_eq!(evaluate(&body, &inputs), evaluate(&again, &inputs), "{} {}", layer.op.name, case.name);
            }
        }
    }
}

/// Two layers on one input, two results.
fn branches() -> Body {
    let mut body = Body { name: "two".to_string(), ..Body::default() };
    let ty = TensorType::new(DType::Fp16, [1, 1, 1, 4]);
    let x = body.add_input("x", ty.clone());
    let word = |body: &mut Body, text: &str| {
        let ty = TensorType::new(DType::String, []);
        body.add_constant(text, ty, aneforge_mil::Constant::Text(text.to_string()))
    };
    let (tanh, add) = (word(&mut body, "Tanh"), word(&mut body, "Add"));
    let mut neuron = vec![Operand::Absent; NEURON.op.ports.len()];
    (neuron[0], neuron[1]) = (Operand::One(x), Operand::One(tanh));
    let first = body.add_operation(&NEURON.op, neuron, vec![("first".to_string(), ty.clone())])[0];
    let operands = vec![Operand::One(first), Operand::One(x), Operand::One(add)];
    let second = body.add_operation(&ELEMENT_WISE.op, operands, vec![("second".to_string(), ty)])[0];
    body.outputs = vec![Output { name: "t".to_string(), value: first }, Output { name: "y".to_string(), value: second }];
    body
}

#[test]
fn several_results_and_shared_inputs_survive() {
    let folder = tempfile::tempdir().unwrap();
    write(&branches(), folder.path()).unwrap();
    let again = read(folder.path()).unwrap();
    assert!(branches().same_computation(&again));
    let net = Value::from_file(folder.path().join(NET)).unwrap();
    let procedure = &net.as_dictionary().unwrap()["ProcedureList"].as_array().unwrap()[0];
    let inputs = procedure.as_dictionary().unwrap()["InputList"].as_array().unwrap();
    assert_eq!(inputs.len(), 2, "one entry for each unit that reads the input");
}

#[test]
fn fp16_parameters_stand_as_their_bits() {
    let case = &NEURON.op.cases[1];
    let folder = tempfile::tempdir().unwrap();
    write(&single(&NEURON.op, case).0, folder.path()).unwrap();
    let text = std::fs::read_to_string(folder.path().join(NET)).unwrap();
    // 6.0 in fp16 is 0x4600.
    assert!(text.contains("<integer>17920</integer>"), "{text}");
}

/// What is changed about the net written by hand, where the fault is, and a part of its text.
const WRONG: &[(&str, &str, &str, &str)] = &[
    ("<string>1.0.10</string>", "<string>1.0.11</string>", "Version", "1.0.10"),
    ("<string>Tanh</string>", "<string>Tan</string>", "network_demo/s2", "C2"),
    ("<string>Neuron</string>", "<string>Linear</string>", "network_demo/s2/Type", "not published"),
    ("<string>Neuron</string>", "<string>Softmin</string>", "network_demo/s2/Type", "no layer has this name"),
    ("<key>Params</key><dict><key>Type</key>", "<key>Params</key><dict><key>Kind</key>", "network_demo/s1/Params", "Kind"),
    ("<string>a</string><string>b</string>", "<string>a</string>", "network_demo/s1", "InputType"),
    ("<string>a</string><string>b</string>", "<string>a</string><string>c</string>", "network_demo/s1/Bottom", "\"c\""),
    ("<array><string>s1</string></array>", "<array><string>s2</string></array>", "network_demo/s2/Bottom", "s2"),
    ("<key>InputDepth</key><integer>1</integer>", "<key>InputDepth</key><integer>2</integer>", "InputList/0/InputDepth", "only 1"),
    ("<key>InputWidth</key><integer>8</integer>", "<key>InputWidth</key><integer>0</integer>", "InputList/0/InputWidth", "extent"),
    ("<key>InputWidth</key><integer>8</integer>", "<key>InputWidth</key><real>8</real>", "InputList/0/InputWidth", "integer"),
    ("<key>InputWidth</key><integer>8</integer>", "<key>InputWidth</key><integer>9</integer>", "network_demo/s1", "C3"),
    ("<string>weights.0</string>", "<string>../weights.0</string>", "network_demo/Weights/0", "weights.0"),
    (
        "<key>OutputChannels</key><integer>1</integer>",
        "<key>OutputChannels</key><integer>3</integer>",
        "network_demo/s1/OutputChannels",
        "3",
    ),
    ("<key>Bottom</key><string>s2</string>", "<key>Bottom</key><string>s1</string>", "network_demo/y/Bottom", "s2"),
    ("<string>s1</string><string>s2</string></array>", "<string>s1</string></array>", "OutputList/0", "no unit"),
    ("<key>Version</key>", "<key>Author</key><string>x</string><key>Version</key>", "", "Author"),
];

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let text = std::str::from_utf8(include_bytes!("nets/sum_tanh.plist")).unwrap();
    for (from, to, place, part) in WRONG {
        let changed = text.replacen(from, to, 1);
        assert!(changed != text, "{from}");
        let error = read(folder(changed.as_bytes()).path()).unwrap_err();
        let NetError::Place { place: found, .. } = &error else { panic!("{to}: {error}") };
        assert!(found.ends_with(place) && error.to_string().contains(part), "{to}: {error}");
    }
}

#[test]
fn constants_lie_within_their_file() {
    let case = &layers().iter().find(|layer| layer.op.name == "DynamicSlice").unwrap().op.cases[0];
    let (body, _) = single(&layers().iter().find(|layer| layer.op.name == "DynamicSlice").unwrap().op, case);
    let folder = tempfile::tempdir().unwrap();
    write(&body, folder.path()).unwrap();
    std::fs::write(folder.path().join(WEIGHTS[1]), b"x").unwrap();
    let error = read(folder.path()).unwrap_err();
    assert!(matches!(&error, NetError::Place { fault: Fault::Weights(_), .. }), "{error}");
}

#[test]
fn bodies_that_no_net_can_say_are_refused_and_leave_no_file() {
    let case: &Case = &SORT.op.cases[0];
    let (good, _) = single(&SORT.op, case);
    let mut unused = good.clone();
    unused.add_input("z", TensorType::new(DType::Fp16, [1, 1, 1, 1]));
    let mut passed = good.clone();
    passed.outputs[0].value = passed.inputs[0];
    let mut doubled = good.clone();
    doubled.outputs.push(doubled.outputs[0].clone());
    let mut reserved = good;
    reserved.values[reserved.inputs[0].index()].name = "Units".to_string();
    for body in [unused, passed, doubled, reserved] {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(write(&body, folder.path()), Err(NetError::Body { .. })));
        assert!(names(folder.path()).is_empty());
    }
}

/// Bytes flipped, dropped and doubled, texts cut: an error or a body that keeps the rules, never a panic.
#[test]
fn damaged_nets_never_panic() {
    let mut state = 0xbad_5eed_u64;
    let mut dice = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % end as u64) as usize
    };
    let folder = tempfile::tempdir().unwrap();
    write(&branches(), folder.path()).unwrap();
    let xml = std::fs::read(folder.path().join(NET)).unwrap();
    Value::from_file(folder.path().join(NET)).unwrap().to_file_binary(folder.path().join(NET)).unwrap();
    let binary = std::fs::read(folder.path().join(NET)).unwrap();
    for whole in [xml, binary] {
        for _ in 0..1200 {
            let mut bytes = whole.clone();
            for _ in 0..=dice(3) {
                let at = dice(bytes.len());
                match dice(4) {
                    0 => bytes[at] ^= 1 << dice(8),
                    1 => bytes.truncate(at.max(1)),
                    2 => {
                        bytes.remove(at);
                    }
                    _ => bytes[at] = [0, 0xff, b'<', b'9', b'/'][dice(5)],
                }
                if bytes.is_empty() {
                    bytes.push(0);
                }
            }
            std::fs::write(folder.path().join(NET), &bytes).unwrap();
            if let Ok(body) = read(folder.path()) {
                body.verify().unwrap();
            }
        }
    }
}

/// Small files that stand for very much.
#[test]
fn bombs_are_refused_before_they_are_expanded() {
    // Each array holds the one before it ten times.
    let mut objects = vec![vec![0x51, b'x']];
    for level in 0..14u8 {
        objects.push([&[0xAA][..], &[level; 10]].concat());
    }
    let (mut bytes, mut offsets) = (b"bplist00".to_vec(), Vec::new());
    for object in &objects {
        offsets.push(bytes.len() as u8);
        bytes.extend_from_slice(object);
    }
    let table = bytes.len() as u64;
    bytes.extend_from_slice(&offsets);
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 1]);
    for number in [objects.len() as u64, objects.len() as u64 - 1, table] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    let deep = format!("<plist version=\"1.0\">{}{}</plist>", "<array>".repeat(200_000), "</array>".repeat(200_000));
    for bomb in [bytes, deep.into_bytes()] {
        let error = read(folder(&bomb).path()).unwrap_err();
        assert!(matches!(error, NetError::Format { .. }), "{error}");
    }
}
