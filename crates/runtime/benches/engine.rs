//! What the host adds to a command on the engine: one dispatch of a program that computes nothing, through the fake of Apple's frameworks,
//! and a decode step of 12 layers whose caches stay in place.
#![allow(unsafe_code)]

use aneforge_mil::NoBlobs;
use aneforge_runtime::ane::{Ane, AneOptions, AneRoute, CachePlace, Source};
use aneforge_runtime::{Device, Program};
use aneforge_testkit::fake;
use serde_json::json;
use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Counts allocations of this program's own allocator; the fake has one of its own.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CALLS: u64 = 20_000;
const LAYERS: usize = 12;
const WINDOW: usize = 64;
const WIDTH: usize = 64;

fn text(inputs: &str, statements: &str, output: &str) -> String {
    format!(
        "program(1.3)\n[buildInfo = dict<string, string>({{}})]\n{{\n    func main<ios18>({inputs}) {{\n{statements}    }} -> ({output});\n}}\n"
    )
}

/// Attention of one token over a window of cached keys and values, layer after layer.
fn decoder() -> String {
    let mut inputs = format!("tensor<fp16, [1, {WIDTH}]> x");
    let (mut body, mut value) = (String::new(), "x".to_string());
    for layer in 0..LAYERS {
        for name in ["k", "v"] {
            let cache = format!("{name}{layer}");
            inputs += &format!(", state<tensor<fp16, [{WINDOW}, {WIDTH}]>> {cache}");
            body += &format!(
                "tensor<fp16, [{WINDOW}, {WIDTH}]> {cache}_old = read_state(input = {cache});
                 tensor<fp16, [{}, {WIDTH}]> {cache}_kept = slice_by_size(x = {cache}_old, begin = tensor<int32, [2]>([1, 0]), size = tensor<int32, [2]>([{}, {WIDTH}]));
                 tensor<fp16, [{WINDOW}, {WIDTH}]> {cache}_new = concat(values = ({cache}_kept, {value}), axis = int32(0), interleave = bool(false));
                 write_state(input = {cache}, data = {cache}_new);\n",
                WINDOW - 1,
                WINDOW - 1,
            );
        }
        body += &format!(
            "tensor<fp16, [1, {WINDOW}]> s{layer} = matmul(x = {value}, y = k{layer}_new, transpose_x = bool(false), transpose_y = bool(true));
             tensor<fp16, [1, {WINDOW}]> p{layer} = softmax(x = s{layer}, axis = int32(-1));
             tensor<fp16, [1, {WIDTH}]> a{layer} = matmul(x = p{layer}, y = v{layer}_new, transpose_x = bool(false), transpose_y = bool(false));\n"
        );
        value = format!("a{layer}");
    }
    text(&inputs, &body, &value)
}

fn main() -> Result<(), Box<dyn Error>> {
    let cache = tempfile::tempdir()?;
    let mut out = std::io::stdout().lock();
    for route in [AneRoute::E5rt, AneRoute::InMemory, AneRoute::Client] {
        fake::control(&json!({ "reset": true }));
        fake::set(json!({ "noop": true, "zombies": false }));
        let place = CachePlace::Folder(cache.path().to_path_buf());
        let options = AneOptions { source: Source::Library(fake::library()), cache: place, route, ..AneOptions::default() };
        let device = Ane::open(options)?;
        let statements = "        tensor<fp16, [1, 32]> y = relu(x = x)[name = string(\"y\")];\n";
        let program = Program::from_text("nothing", &text("tensor<fp16, [1, 32]> x", statements, "y"), &NoBlobs)?;
        let executable = device.load(&Arc::new(program))?;
        let mut bound = executable.bind()?;
        (0..100).try_for_each(|_| bound.execute())?;
        let (mut best, mut within) = (f64::INFINITY, 0.0);
        let mut taken = 0;
        for _ in 0..5 {
            let own = own_time();
            let counted = ALLOCATIONS.load(Ordering::Relaxed);
            let start = Instant::now();
            for _ in 0..CALLS {
                bound.execute()?;
            }
            let all = start.elapsed().as_nanos() as f64 / CALLS as f64;
            taken += ALLOCATIONS.load(Ordering::Relaxed) - counted;
            let fake = (own_time() - own) as f64 / CALLS as f64;
            if all - fake < best {
                (best, within) = (all - fake, fake);
            }
        }
        writeln!(
            out,
            "{:16} {best:8.1} ns per dispatch over the {within:.1} ns of the fake, {taken} allocations in {} calls",
            device.name(),
            5 * CALLS
        )?;

        fake::set(json!({ "noop": false }));
        let step = device.load(&Arc::new(Program::from_text("decoder", &decoder(), &NoBlobs)?))?;
        let (input, mut output) = (vec![0u8; 2 * WIDTH], vec![0u8; 2 * WIDTH]);
        let start = Instant::now();
        for _ in 0..20 {
            step.execute(&[&input], &mut [&mut output])?;
        }
        let stats = step.report().engine.unwrap_or_default().stats;
        let caches = 2 * LAYERS * WINDOW * WIDTH * 2;
        writeln!(
            out,
            "{:16} decode step of {LAYERS} layers with {caches} bytes of caches: {:.1} us on the fake; the host copied {} bytes of states, {} in and {} out in {} steps",
            "",
            start.elapsed().as_secs_f64() * 1e6 / 20.0,
            stats.copied_state + stats.copied_between,
            stats.copied_in,
            stats.copied_out,
            stats.commands
        )?;
    }
    Ok(())
}

/// Nanoseconds that the fake spent in itself.
fn own_time() -> u64 {
    fake::counters()["own_time_ns"].as_u64().unwrap_or(0)
}
