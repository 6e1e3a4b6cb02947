//! Blocks, as Clang's public "Block Implementation Specification" lays them out.

use super::{BlockRef, Id};
use crate::counters::{live, violation};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// A block in memory, up to what it captured.
#[derive(Debug)]
#[repr(C)]
pub struct Block {
    isa: *const c_void,
    flags: AtomicI32,
    reserved: c_int,
    invoke: *const c_void,
    descriptor: *const Descriptor,
}

#[derive(Debug)]
#[repr(C)]
struct Descriptor {
    reserved: usize,
    size: usize,
    // Two functions follow where the flag below is set.
    copy: Option<unsafe extern "C" fn(*mut c_void, *const c_void)>,
    dispose: Option<unsafe extern "C" fn(*mut c_void)>,
}

const REFERENCE: i32 = 2;
const REFERENCES: i32 = 0xfffe;
const NEEDS_FREE: i32 = 1 << 24;
const HAS_COPY: i32 = 1 << 25;
const IS_GLOBAL: i32 = 1 << 28;

/// Class of blocks without captures.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static _NSConcreteGlobalBlock: [usize; 32] = [1; 32];
/// Class of blocks on the stack.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static _NSConcreteStackBlock: [usize; 32] = [2; 32];
/// Class of copied blocks.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static _NSConcreteMallocBlock: [usize; 32] = [3; 32];

pub(super) fn is_block_class(isa: *const c_void) -> bool {
    [&_NSConcreteGlobalBlock, &_NSConcreteStackBlock, &_NSConcreteMallocBlock]
        .into_iter()
        .any(|class| std::ptr::eq(isa, class.as_ptr().cast()))
}

/// Whether an address is that of a block.
pub(super) fn is_block(id: Id) -> bool {
    // SAFETY: nil, or the address of an object or block, which starts with a word for its class.
    unsafe { id.address().cast::<*const c_void>().as_ref() }.is_some_and(|isa| is_block_class(*isa))
}

/// Copies a block to the heap, or counts one more owner of one that is there.
///
/// # Safety
/// `block` is null or a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Block_copy(block: *const c_void) -> *mut c_void {
    // SAFETY: the caller's promise.
    let Some(source) = (unsafe { block.cast::<Block>().as_ref() }) else { return std::ptr::null_mut() };
    if !is_block_class(source.isa) {
        violation("a block without a block's class".to_string());
        return std::ptr::null_mut();
    }
    let flags = source.flags.load(Ordering::Relaxed);
    if flags & IS_GLOBAL != 0 {
        return block.cast_mut();
    }
    if flags & NEEDS_FREE != 0 {
        source.flags.fetch_add(REFERENCE, Ordering::Relaxed);
        return block.cast_mut();
    }
    // SAFETY: every block has a descriptor.
    let descriptor = unsafe { &*source.descriptor };
    let words = descriptor.size.div_ceil(size_of::<u64>());
    let copy = Box::leak(vec![0_u64; words].into_boxed_slice()).as_mut_ptr().cast::<c_void>();
    // SAFETY: the copy has at least `size` bytes, which is the size of the block.
    unsafe { std::ptr::copy_nonoverlapping(block.cast::<u8>(), copy.cast::<u8>(), descriptor.size) };
    let made = copy.cast::<Block>();
    // SAFETY: the copy is a block now and nobody else knows it.
    unsafe {
        (*made).isa = _NSConcreteMallocBlock.as_ptr().cast();
        (*made).flags = AtomicI32::new((flags & !REFERENCES) | NEEDS_FREE | REFERENCE);
    }
    if flags & HAS_COPY != 0
        && let Some(helper) = descriptor.copy
    {
        // SAFETY: the block's own helper, on the block and its copy.
        unsafe { helper(copy, block) };
    }
    live("Block", 1);
    copy
}

/// Takes back one owner of a copied block and frees it after the last.
///
/// # Safety
/// `block` is null or a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Block_release(block: *const c_void) {
    // SAFETY: the caller's promise.
    let Some(source) = (unsafe { block.cast::<Block>().as_ref() }) else { return };
    let flags = source.flags.load(Ordering::Relaxed);
    if flags & NEEDS_FREE == 0 {
        return;
    }
    if source.flags.fetch_sub(REFERENCE, Ordering::AcqRel) & REFERENCES != REFERENCE {
        return;
    }
    // SAFETY: every block has a descriptor, which outlives it.
    let descriptor = unsafe { &*source.descriptor };
    if flags & HAS_COPY != 0
        && let Some(helper) = descriptor.dispose
    {
        // SAFETY: the block's own helper; this was the last owner.
        unsafe { helper(block.cast_mut()) };
    }
    live("Block", -1);
    let words = descriptor.size.div_ceil(size_of::<u64>());
    let memory = std::ptr::slice_from_raw_parts_mut(block.cast_mut().cast::<u64>(), words);
    // SAFETY: allocated in `_Block_copy` with this many words.
    drop(unsafe { Box::from_raw(memory) });
}

/// A copied block that this library keeps.
#[derive(Debug)]
pub struct KeptBlock(*mut c_void);

// SAFETY: a block is counted atomically; whoever hands one to another thread says by it that it may run there.
unsafe impl Send for KeptBlock {}
// SAFETY: as above.
unsafe impl Sync for KeptBlock {}

impl KeptBlock {
    /// Copies a block; nothing for null.
    pub fn copy(block: BlockRef) -> Option<Self> {
        // SAFETY: a method's argument that is declared as a block.
        let copy = unsafe { _Block_copy(block.0.cast()) };
        (!copy.is_null()).then_some(Self(copy))
    }
}

impl Drop for KeptBlock {
    fn drop(&mut self) {
        // SAFETY: kept since `copy`.
        unsafe { _Block_release(self.0) };
    }
}

/// Calls the block that gives memory back which was lent to a data object.
pub fn call_deallocator(block: &KeptBlock, start: usize, length: usize) {
    type Invoke = unsafe extern "C" fn(*const c_void, *mut c_void, usize);
    let Some(invoke) = invoke_of(block.0.cast()) else { return };
    // SAFETY: the function of a deallocator takes these.
    let invoke: Invoke = unsafe { std::mem::transmute(invoke) };
    // SAFETY: the block lives through the call.
    unsafe { invoke(block.0, std::ptr::with_exposed_provenance_mut(start), length) };
}

/// Calls a block that takes an object and answers a number; 0 for null.
pub fn invoke_with(block: BlockRef, object: Id) -> i32 {
    type Invoke = unsafe extern "C" fn(*const Block, Id) -> i32;
    let Some(invoke) = invoke_of(block.0) else { return 0 };
    // SAFETY: the caller's function declares this type for its block.
    let invoke: Invoke = unsafe { std::mem::transmute(invoke) };
    // SAFETY: the block lives through the call.
    unsafe { invoke(block.0, object) }
}

fn invoke_of(block: *const Block) -> Option<*const c_void> {
    // SAFETY: null, or an argument that is declared as a block.
    let invoke = unsafe { block.as_ref() }?.invoke;
    (!invoke.is_null()).then_some(invoke)
}

/// Calls a block with whether it went well and the error.
pub fn call_completion(block: &KeptBlock, success: bool, error: Id) {
    type Invoke = unsafe extern "C" fn(*const c_void, bool, Id);
    let Some(invoke) = invoke_of(block.0.cast()) else { return };
    // SAFETY: the function of a completion block takes these; one that takes less leaves the rest in its registers.
    let invoke: Invoke = unsafe { std::mem::transmute(invoke) };
    // SAFETY: the block lives through the call.
    unsafe { invoke(block.0, success, error) };
}

/// Calls a block without arguments that gives a number.
pub fn call_number(block: &KeptBlock) -> i64 {
    type Invoke = unsafe extern "C" fn(*const c_void) -> i64;
    let Some(invoke) = invoke_of(block.0.cast()) else { return 0 };
    // SAFETY: who passes the block promises that its function is of this kind.
    let invoke: Invoke = unsafe { std::mem::transmute(invoke) };
    // SAFETY: the block lives through the call.
    unsafe { invoke(block.0) }
}
