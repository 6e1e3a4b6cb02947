//! A loaded program is shared between threads and allocates nothing per call.
#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)]

mod common;

use aneforge_runtime::{Executable, open};
use common::{inputs, literal, program, run};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Counts allocations of all threads while it is told to.
struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTS.load(Ordering::Relaxed) {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
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

fn network() -> Arc<aneforge_runtime::Program> {
    let statements = format!(
        r#"tensor<fp16, [1, 8, 12, 12]> c = conv(x = x, weight = {}, strides = tensor<int32, [2]>([1, 1]), pad_type = string("custom"), pad = tensor<int32, [4]>([1, 1, 1, 1]), dilations = tensor<int32, [2]>([1, 1]), groups = int32(1))[name = string("c")];
        tensor<fp16, [1, 8, 12, 12]> r = relu(x = c)[name = string("r")];
        tensor<fp16, [1, 8, 6, 6]> p = max_pool(x = r, kernel_sizes = tensor<int32, [2]>([2, 2]), strides = tensor<int32, [2]>([2, 2]), pad_type = string("valid"))[name = string("p")];
        tensor<fp16, [1, 8, 36]> f = reshape(x = p, shape = tensor<int32, [3]>([1, 8, 36]))[name = string("f")];
        tensor<fp16, [1, 36, 8]> t = transpose(x = f, perm = tensor<int32, [3]>([0, 2, 1]))[name = string("t")];
        tensor<fp16, [1, 36, 16]> l = linear(x = t, weight = {}, bias = {})[name = string("l")];
        tensor<fp16, [1, 36, 16]> g = gelu(x = l, mode = string("EXACT"))[name = string("g")];
        tensor<fp16, [1, 36, 16]> n = layer_norm(x = g, axes = tensor<int32, [1]>([-1]), epsilon = fp16(0x1p-16))[name = string("n")];
        tensor<fp16, [1, 36, 36]> s = matmul(x = n, y = n, transpose_x = bool(false), transpose_y = bool(true))[name = string("s")];
        tensor<fp16, [1, 36, 36]> q = softmax(x = s, axis = int32(-1))[name = string("q")];
        tensor<fp16, [1, 36, 16]> o = matmul(x = q, y = n)[name = string("o")];
        tensor<fp16, [1, 36, 16]> e = exp2(x = o)[name = string("e")];
        tensor<fp16, [1, 36]> y = reduce_sum(x = e, axes = tensor<int32, [1]>([2]), keep_dims = bool(false))[name = string("y")];"#,
        literal(&[8, 3, 3, 3], 1, (-0.4, 0.4)),
        literal(&[16, 8], 2, (-0.5, 0.5)),
        literal(&[16], 3, (-0.5, 0.5)),
    );
    program("tensor<fp16, [1, 3, 12, 12]> x", &statements, "y")
}

fn execute(executable: &dyn Executable, input: &[u8], output: &mut [u8]) {
    executable.execute(&[input], &mut [output]).unwrap();
}

#[test]
fn calls_allocate_nothing_and_threads_share_one_executable() {
    let program = network();
    let images: Vec<_> = (0..8).map(|seed| inputs(&program, 100 * seed, (-2.0, 2.0)).remove(0)).collect();
    for name in ["null", "cpu", "emulator:m1", "emulator:m5"] {
        let device = open(name).unwrap();
        let executable = device.load(&program).unwrap();
        assert_eq!(executable.report().generic_ops(), Vec::<&str>::new(), "{name}");
        let wanted: Vec<Vec<u8>> =
            images.iter().map(|image| run(&*device, &program, std::slice::from_ref(image))[0].bytes().to_vec()).collect();

        // Each thread of the pool grows its scratch when it first takes part, which on a busy machine may be late; an allocation of
        // each call would be in every round.
        let mut output = vec![0; 72];
        let mut round = || {
            ALLOCATIONS.store(0, Ordering::SeqCst);
            COUNTS.store(true, Ordering::SeqCst);
            (0..20).for_each(|_| execute(&*executable, images[0].bytes(), &mut output));
            COUNTS.store(false, Ordering::SeqCst);
            ALLOCATIONS.load(Ordering::SeqCst)
        };
        assert!((0..50).any(|_| round() == 0), "{name} allocated while executing");
        assert_eq!(output, wanted[0], "{name}");

        std::thread::scope(|scope| {
            for (image, wanted) in images.iter().zip(&wanted) {
                let executable = &executable;
                scope.spawn(move || {
                    for _ in 0..20 {
                        let mut output = vec![0; 72];
                        execute(&**executable, image.bytes(), &mut output);
                        assert_eq!(&output, wanted, "{name}");
                    }
                });
            }
        });
    }
}
