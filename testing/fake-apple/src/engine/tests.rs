//! Networks of native layers through the daemon, on memory with padded rows, and the same program as text.
#![allow(clippy::unwrap_used)]

use super::{compile, load, loaded_programs};
use crate::interface::{Options, ProgramKind, Route, View, ViewMut};
use half::f16;
use std::path::PathBuf;
use std::ptr::NonNull;

/// Two units, sum and hyperbolic tangent, on rows of eight; schema 1.0.10 as the PyPI package aneforge 0.4.0 writes it.
fn network(width: usize) -> String {
    let input = |name: &str| {
        format!(
            "<dict><key>BatchSize</key><integer>1</integer><key>InputChannels</key><integer>2</integer><key>InputDepth</key>\
             <integer>1</integer><key>InputHeight</key><integer>2</integer><key>InputInterleave</key><integer>1</integer>\
             <key>InputName</key><string>{name}</string><key>InputType</key><string>Float16</string><key>InputWidth</key>\
             <integer>{width}</integer><key>Name</key><string>s1</string><key>OperationName</key><string>op0</string></dict>"
        )
    };
    let unit = |name: &str, bottoms: &[&str], kind: &str, layer: &str| {
        let list = |items: Vec<String>| items.iter().map(|item| format!("<string>{item}</string>")).collect::<String>();
        format!(
            "<key>{name}</key><dict><key>Bottom</key><array>{}</array><key>InputType</key><array>{}</array><key>Name</key>\
             <string>{name}</string><key>OutputChannels</key><integer>2</integer><key>OutputType</key><string>Float16</string>\
             <key>Params</key><dict><key>Type</key><string>{kind}</string></dict><key>Type</key><string>{layer}</string></dict>",
            list(bottoms.iter().map(ToString::to_string).collect()),
            list(vec!["Float16".to_string(); bottoms.len()]),
        )
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict><key>Version</key><string>1.0.10</string>\
         <key>Networks</key><array><string>network_demo</string></array><key>ProcedureList</key><array><dict><key>Name</key>\
         <string>procedure_demo</string><key>OperationList</key><array><dict><key>NetworkName</key><string>network_demo</string>\
         <key>OperationName</key><string>op0</string></dict></array><key>InputList</key><array>{}{}</array><key>OutputList</key>\
         <array><dict><key>Name</key><string>s2</string><key>OperationName</key><string>op0</string><key>OutputInterleave</key>\
         <integer>1</integer><key>OutputName</key><string>y</string><key>OutputType</key><string>Float16</string></dict></array>\
         </dict></array><key>network_demo</key><dict><key>Units</key><array><string>s1</string><string>s2</string></array>\
         <key>Weights</key><array><string>weights.0</string></array>{}{}<key>y</key><dict><key>Bottom</key><string>s2</string>\
         <key>OutputInterleave</key><integer>1</integer><key>OutputName</key><string>y</string><key>OutputType</key>\
         <string>Float16</string></dict></dict></dict></plist>",
        input("a"),
        input("b"),
        unit("s1", &["a", "b"], "Add", "ElementWise"),
        unit("s2", &["s1"], "ReLU", "Neuron"),
    )
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("fake-apple-engine-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Places of the elements of a port of shape 1, 2, 1, 2, 5 with rows of 64 bytes.
fn places() -> impl Iterator<Item = usize> {
    (0..20).map(|element| element / 10 * 128 + element / 5 % 2 * 64 + element % 5 * 2)
}

fn strided(values: impl Fn(usize) -> f32) -> Vec<u8> {
    let mut memory = vec![0xFF; 49_152];
    for (element, place) in places().enumerate() {
        memory[place..place + 2].copy_from_slice(&f16::from_f32(values(element)).to_le_bytes());
    }
    memory
}

fn view(memory: &mut [u8]) -> (View, ViewMut) {
    let start = NonNull::new(memory.as_mut_ptr()).unwrap();
    (View { start, bytes: memory.len() }, ViewMut { start, bytes: memory.len() })
}

#[test]
fn a_network_reads_and_writes_rows_with_room_between_them() {
    crate::settings::change("{\"chip\": \"m1\"}").unwrap();
    let folder = Folder::new("network");
    std::fs::write(folder.0.join("net.plist"), network(5)).unwrap();
    std::fs::write(folder.0.join("weights.0"), []).unwrap();
    let compiled = compile(&folder.0, ProgramKind::Network, Route::InMemory, &Options::default()).unwrap();
    let main = &compiled.functions[0];
    assert_eq!((main.name.as_str(), main.inputs.len(), main.outputs[0].name.as_str()), ("main", 2, "y"));
    assert_eq!((main.inputs[0].shape.as_slice(), main.inputs[0].bytes), (&[1, 2, 1, 2, 5][..], 256));
    let (mut a, mut b) = (strided(|element| element as f32 - 8.0), strided(|_| 0.5));
    let loaded = load(&compiled).unwrap();
    assert_eq!(loaded_programs(), 1);
    // The sum takes the place of the first input.
    let ((in_a, out), (in_b, _)) = (view(&mut a), view(&mut b));
    // SAFETY: the views are the two vectors, which nothing else touches during the call.
    unsafe { loaded.execute(0, &[in_a, in_b], &[out]) }.unwrap();
    for (element, place) in places().enumerate() {
        let got = f16::from_le_bytes([a[place], a[place + 1]]).to_f32();
        assert_eq!(got, (element as f32 - 7.5).max(0.0), "element {element}");
    }
    assert!(a[10..64].iter().all(|&byte| byte == 0xFF), "what stands between rows is left alone");
    // A function that there is not.
    // SAFETY: as above.
    let fault = unsafe { loaded.execute(1, &[in_a, in_b], &[out]) }.unwrap_err();
    assert!(fault.text.contains("status=0x2"), "{fault:?}");
    drop(loaded);
    assert_eq!(loaded_programs(), 0);
}

#[test]
fn a_network_with_an_unknown_layer_is_refused() {
    let folder = Folder::new("unknown");
    std::fs::write(folder.0.join("net.plist"), network(5).replace(">Neuron<", ">Neutron<")).unwrap();
    std::fs::write(folder.0.join("weights.0"), []).unwrap();
    let fault = compile(&folder.0, ProgramKind::Network, Route::InMemory, &Options::default()).unwrap_err();
    assert_eq!((fault.code, fault.text.as_str()), (1, "ANECCompile() FAILED: err=()"));
    assert_eq!(fault.domain, super::failure::COMPILER);
    assert!(crate::diagnostics::taken().join("").contains("Neutron"));
}
