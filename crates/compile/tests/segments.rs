//! Cutting programs with native layers: as few segments as possible, every operation once, moves at the edge in the ports.
#![allow(clippy::expect_used, clippy::unwrap_used)] // a failed step is a failed test

use aneforge_compile::bundle::{MANIFEST, SEGMENTS};
use aneforge_compile::segment::phases;
use aneforge_compile::{CompileError, CompileOptions, Compiled, Limits, Manifest, Move, SegmentKind, compile};
use aneforge_core::{DType, Graph, HostArray, Tensor, sdpa};

fn compiled(outputs: &[(&str, &Tensor)]) -> Compiled {
    compile(outputs, &CompileOptions::default()).expect("compiles")
}

fn kinds(compiled: &Compiled) -> Vec<SegmentKind> {
    compiled.segments.as_ref().map_or(Vec::new(), |segments| segments.parts.iter().map(|part| part.kind).collect())
}

use SegmentKind::{Mil, Native};

#[test]
fn a_program_without_native_layers_stays_whole() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2, 3]);
    assert!(compiled(&[("y", &x.relu())]).segments.is_none());
}

#[test]
fn transposes_around_attention_become_the_layout_of_its_ports() {
    let graph = Graph::new();
    let [q, k, v] = ["q", "k", "v"].map(|name| graph.input(name, DType::Fp16, &[1, 2, 4, 8]));
    let compiled = compiled(&[("y", &sdpa(&q, &k, &v, None, None, false))]);
    assert_eq!(kinds(&compiled), [Native]);
    let segments = compiled.segments.expect("segments");
    let moved = Move::Transpose(vec![0, 2, 1, 3]);
    assert_eq!(segments.parts[0].body.operations.len(), 1);
    assert!(segments.parts[0].inputs.iter().all(|link| link.segment.is_none() && link.layout == [moved.clone()]));
    assert_eq!(segments.outputs[0].layout, [moved]);
    assert_eq!(segments.parts[0].body.outputs[0].name, "y");
}

#[test]
fn independent_layers_share_a_network_and_independent_text_a_program() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2, 6]);
    let before = x.exp();
    let (a, b) = (before.sort(false), before.topk(2, true));
    let outputs = [("a", &a.relu()), ("b", &b.tanh()), ("c", &before)];
    let compiled = compiled(&outputs);
    assert_eq!(kinds(&compiled), [Mil, Native, Mil]);
    let parts = compiled.segments.expect("segments").parts;
    assert_eq!(parts[1].body.operations.len(), 2, "both layers in one network");
    assert_eq!(parts[1].body.inputs.len(), 1, "and their input is handed over once");
}

#[test]
fn a_move_that_text_needs_first_stays_in_the_text() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[4, 6]);
    let moved = x.transpose(&[1, 0]);
    let y = moved.relu().sort(false);
    let compiled = compiled(&[("y", &y), ("z", &moved.sort(true))]);
    assert_eq!(kinds(&compiled), [Mil, Native]);
    let parts = &compiled.segments.as_ref().expect("segments").parts;
    let transposes = |part: usize| parts[part].body.operations.iter().filter(|operation| operation.op.name == "transpose").count();
    assert_eq!((transposes(0), transposes(1)), (1, 0));
}

#[test]
fn every_operation_runs_in_one_segment_once() {
    let mut dice = Dice(7);
    for _ in 0..60 {
        let compiled = compiled_of(&mut dice);
        let Some(segments) = &compiled.segments else { continue };
        let moves = ["transpose", "reshape"];
        let mut names: Vec<&str> = segments
            .parts
            .iter()
            .flat_map(|part| part.body.operations.iter().map(|operation| part.body.value(operation.outputs[0]).name.as_str()))
            .collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "an operation runs twice");
        for operation in compiled.body.operations.iter().filter(|operation| !moves.contains(&operation.op.name)) {
            let name = compiled.body.value(operation.outputs[0]).name.as_str();
            assert!(names.binary_search(&name).is_ok(), "{name} runs nowhere");
        }
        for (index, part) in segments.parts.iter().enumerate() {
            assert!(
                part.inputs.iter().all(|link| link.segment.is_none_or(|from| from < index)),
                "a value is used before it is made"
            );
            part.body.verify().expect("a legal segment");
            let native = part.body.operations.iter().all(|operation| aneforge_native::layer::of(operation.op).is_some());
            assert_eq!(native, part.kind == Native);
        }
        assert!(segments.parts.windows(2).all(|pair| pair[0].kind != pair[1].kind), "neighbours of one kind are one segment");
    }
}

/// A random program of MIL operations, native layers and moves.
fn compiled_of(dice: &mut Dice) -> Compiled {
    let graph = Graph::new();
    let mut tensors = vec![graph.input("x", DType::Fp16, &[4, 4]), graph.input("z", DType::Fp16, &[4, 4])];
    for _ in 0..3 + dice.below(9) {
        let (a, b) = (tensors[dice.below(tensors.len())].clone(), tensors[dice.below(tensors.len())].clone());
        tensors.push(match dice.below(7) {
            0 => a.relu(),
            1 => a + b,
            2 => a.sort(true),
            3 => a.scaled_elementwise(&b, "Max", 1.0),
            4 => a.minmax_norm("Width", 0.5),
            5 => a.transpose(&[1, 0]),
            _ => a.transpose(&[1, 0]).reshape(&[2, 8]).transpose(&[1, 0]).reshape(&[4, 4]),
        });
    }
    let last = tensors.len() - 1;
    compiled(&[("y", &tensors[last]), ("w", &tensors[last - 1])])
}

/// The planner's number of segments is the smallest that any order of the operations gives.
#[test]
fn no_order_of_operations_needs_fewer_segments() {
    let mut dice = Dice(11);
    for _ in 0..400 {
        let count = 1 + dice.below(9);
        let kinds: Vec<Option<bool>> = (0..count).map(|_| [Some(true), Some(false), None][dice.below(3)]).collect();
        let needs: Vec<Vec<usize>> = (0..count).map(|node| (0..node).filter(|_| dice.below(3) == 0).collect()).collect();
        let planned = [false, true]
            .map(|first| {
                let phases = phases(&kinds, &needs, first);
                for (node, needed) in needs.iter().enumerate() {
                    assert!(needed.iter().all(|&need| phases[need] <= phases[node]));
                    assert!(kinds[node].is_none_or(|kind| (kind == first) == phases[node].is_multiple_of(2)));
                }
                let mut used: Vec<usize> =
                    phases.iter().zip(&kinds).filter(|(_, kind)| kind.is_some()).map(|(&phase, _)| phase).collect();
                used.sort_unstable();
                used.last().map_or(0, |&last| last + 1)
            })
            .into_iter()
            .min();
        assert_eq!(planned, Some(fewest(&kinds, &needs)), "{kinds:?} {needs:?}");
    }
}

/// Fewest runs of one kind over all orders that keep the dependencies, by trying every set of finished nodes.
fn fewest(kinds: &[Option<bool>], needs: &[Vec<usize>]) -> usize {
    let all = (1usize << kinds.len()) - 1;
    // Least number of runs after which exactly these nodes are done, by the kind of the last run.
    let mut best = vec![[usize::MAX; 2]; all + 1];
    best[0] = [0, 0];
    let mut answer = usize::MAX;
    for done in 0..=all {
        for last in 0..2 {
            let runs = best[done][last];
            if runs == usize::MAX {
                continue;
            }
            if done == all {
                answer = answer.min(runs);
            }
            for node in 0..kinds.len() {
                if done >> node & 1 == 1 || !needs[node].iter().all(|&need| done >> need & 1 == 1) {
                    continue;
                }
                let next = done | 1 << node;
                let (kind, runs) = match kinds[node] {
                    None => (last, runs),
                    // Before the first run there is no kind to stay with.
                    Some(kind) => (usize::from(kind), runs + usize::from(runs == 0 || usize::from(kind) != last)),
                };
                best[next][kind] = best[next][kind].min(runs);
            }
        }
    }
    answer
}

#[test]
fn a_chip_without_the_layer_is_an_error_that_says_so() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2, 6]);
    let options = CompileOptions { target: "m1".parse().expect("a chip"), ..CompileOptions::default() };
    let error = compile(&[("y", &x.sort(false))], &options).expect_err("M1 has no sort");
    assert!(matches!(error, CompileError::Limit { op: "Sort", .. }) && error.to_string().contains("A14"), "{error}");
    let later = CompileOptions { target: "m2".parse().expect("a chip"), ..CompileOptions::default() };
    compile(&[("y", &x.sort(false))], &later).expect("M2 has it");
}

#[test]
fn a_bundle_in_segments_lists_its_files_and_is_replaced_whole() {
    let parent = tempfile::tempdir().expect("folder");
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[2, 6]);
    let segmented = compiled(&[("y", &x.exp().dynamic_slice(&[1], &[3]).relu())]);
    let folder = parent.path().join("model.ane");
    let manifest = segmented.write(&folder).expect("written");
    let names: Vec<_> = manifest.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "segments/0/model.mil",
            "segments/0/weights.bin",
            "segments/1/net.plist",
            "segments/1/weights.0",
            "segments/1/weights.1",
            "segments/2/model.mil",
            "segments/2/weights.bin"
        ]
    );
    for file in &manifest.files {
        let bytes = std::fs::read(folder.join(&file.name)).expect("file");
        assert_eq!(file.bytes, bytes.len() as u64);
        assert_eq!(file.xxh3, format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes)));
    }
    let read: Manifest = serde_json::from_slice(&std::fs::read(folder.join(MANIFEST)).expect("manifest")).expect("JSON");
    assert_eq!(read, manifest);
    // A whole program takes its place, and the other way round.
    compiled(&[("y", &x.relu())]).write(&folder).expect("replaced");
    assert!(!folder.join(SEGMENTS).exists());
    segmented.write(&folder).expect("replaced again");
    std::fs::write(folder.join(SEGMENTS).join("0/mine.txt"), "mine").expect("file");
    assert!(matches!(segmented.write(&folder), Err(CompileError::Write { .. })), "a file would be lost");
}

/// A small generator of numbers (xorshift64*), so that failures repeat.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}

/// Six products with weights of 128 bytes each, one behind the other.
fn chain(graph: &Graph) -> Tensor {
    let x = graph.input("x", DType::Fp16, &[1, 8]);
    (0..6).fold(x, |x, step| {
        let values: Vec<f32> = (0..64).map(|index| ((index * 7 + step) % 11) as f32 / 16.0 - 0.3).collect();
        x.linear(&graph.constant(&HostArray::from_f32([8, 8], &values).expect("an array")), None).relu()
    })
}

fn limited(outputs: &[(&str, &Tensor)], limits: Limits) -> Result<Compiled, CompileError> {
    compile(outputs, &CompileOptions { limits, target: "m1".parse().expect("a target"), ..CompileOptions::default() })
}

#[test]
fn a_program_with_more_weights_than_an_engine_takes_is_cut() {
    let graph = Graph::new();
    let y = chain(&graph);
    let of = |bytes| limited(&[("y", &y)], Limits { weight_bytes: Some(bytes), operations: None });
    assert!(of(6 * 192 + 64).expect("compiles").segments.is_none(), "the file's header, and a header with each weight");
    for (bytes, parts) in [(3 * 192 + 64, 2), (2 * 192 + 64, 3), (300, 6)] {
        let compiled = of(bytes).expect("compiles");
        assert_eq!(kinds(&compiled), vec![Mil; parts], "{bytes}");
        let own: Vec<usize> = compiled.segments.iter().flat_map(|s| &s.parts).map(|part| part.body.operations.len()).collect();
        assert_eq!(own.iter().sum::<usize>(), compiled.body.operations.len(), "every operation once: {own:?}");
    }
    let error = of(100).expect_err("one weight is larger").to_string();
    assert!(error.contains("room for 100 bytes of weights") && error.contains("compress the weight"), "{error}");
}

#[test]
fn a_program_with_more_operations_than_the_limit_is_cut_where_fp16_goes_over() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 8]);
    let y = x.exp().greater(&x).select(&x.tanh(), &x).relu();
    let of = |operations| limited(&[("y", &y)], Limits { weight_bytes: None, operations: Some(operations) });
    let whole = of(5).expect("compiles");
    assert!(whole.segments.is_none(), "{:?}", whole.body.operations.len());
    let compiled = of(4).expect("compiles");
    for part in &compiled.segments.as_ref().expect("segments").parts {
        assert!(part.body.inputs.iter().all(|&id| part.body.ty(id).dtype == DType::Fp16), "a mask crosses");
    }
    assert!(of(1).expect_err("a mask would cross").to_string().contains("room for 1 operations"));
}

#[test]
fn a_cut_leaves_no_handful_of_operations_where_there_is_a_choice() {
    let graph = Graph::new();
    let x = graph.input("x", DType::Fp16, &[1, 8]);
    let own = |count: usize, operations: usize| -> Vec<usize> {
        let y = (0..count).fold(x.clone(), |x, step| if step % 2 == 0 { x.tanh() } else { x.exp() });
        let compiled = limited(&[("y", &y)], Limits { weight_bytes: None, operations: Some(operations) }).expect("compiles");
        compiled.segments.iter().flat_map(|segments| &segments.parts).map(|part| part.body.operations.len()).collect()
    };
    assert_eq!(own(40, 30), [24, 16]);
    assert_eq!(own(92, 30), [30, 30, 16, 16], "three cuts, as many as before");
    assert_eq!(own(62, 31), [31, 31]);
    assert_eq!(own(20, 15), [15, 5], "too few for two parts of sixteen");
}
