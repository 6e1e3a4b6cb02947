//! Blocks: closures in the form that Apple's C functions and methods take.
//!
//! The layout is that of the public block specification (clang's Block-ABI-Apple). A literal is made on the stack and copied by
//! the runtime at once; copies count their closure, so a framework may keep a block longer than we do.

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::SysError;
use crate::library::{Search, functions};

functions! {
    struct BlockFunctions {
        copy: "_Block_copy" (block: *const c_void) -> *mut c_void;
        release: "_Block_release" (block: *const c_void);
    }
}

/// The block runtime.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    functions: BlockFunctions,
    /// The class of blocks on the stack.
    stack: NonNull<c_void>,
}

// SAFETY: `stack` is the address of a class, which is never written through this type and never goes away.
unsafe impl Send for Blocks {}
// SAFETY: as above.
unsafe impl Sync for Blocks {}

const HAS_COPY_DISPOSE: c_int = 1 << 25;
const HAS_SIGNATURE: c_int = 1 << 30;

#[repr(C)]
struct Descriptor {
    reserved: c_ulong,
    size: c_ulong,
    copy: unsafe extern "C" fn(target: *mut c_void, source: *const c_void),
    dispose: unsafe extern "C" fn(block: *mut c_void),
    signature: *const c_char,
}

#[repr(C)]
struct Literal<W: ?Sized> {
    class: *const c_void,
    flags: c_int,
    reserved: c_int,
    invoke: *const c_void,
    descriptor: *const Descriptor,
    work: ManuallyDrop<Arc<W>>,
}

/// What a block runs, and the C type of its call.
pub(crate) trait Work: Send + Sync + 'static {
    /// The block's type encoding, ended by zero.
    const SIGNATURE: &'static std::ffi::CStr;
    /// The C function of the block.
    fn invoke() -> *const c_void;
}

/// `int64_t (^)(void)`: what an execution stream calls when it is submitted.
pub(crate) struct Submitted(pub(crate) Box<dyn Fn() -> i64 + Send + Sync>);

impl Work for Submitted {
    const SIGNATURE: &'static std::ffi::CStr = c"q8@?0";
    fn invoke() -> *const c_void {
        unsafe extern "C" fn invoke(block: *mut Literal<Submitted>) -> i64 {
            // SAFETY: the runtime calls a block with itself as its first argument, and keeps it alive during the call.
            let work = unsafe { &(*block).work };
            (work.0)()
        }
        (invoke as unsafe extern "C" fn(_) -> _) as *const c_void
    }
}

/// `void (^)(void)`: told that something has ended. Arguments that a framework passes are not looked at.
pub(crate) struct Completed(pub(crate) Box<dyn Fn() + Send + Sync>);

impl Work for Completed {
    const SIGNATURE: &'static std::ffi::CStr = c"v8@?0";
    fn invoke() -> *const c_void {
        unsafe extern "C" fn invoke(block: *mut Literal<Completed>) {
            // SAFETY: as in `Submitted`.
            let work = unsafe { &(*block).work };
            (work.0)();
        }
        (invoke as unsafe extern "C" fn(_)) as *const c_void
    }
}

/// `void (^)(void *bytes, NSUInteger length)`: the end of borrowed bytes. It only keeps their owner alive; the owner goes when
/// the last copy of the block does.
pub(crate) struct Owner(#[allow(dead_code, reason = "held for its destructor")] pub(crate) Box<dyn Send + Sync>);

impl Work for Owner {
    const SIGNATURE: &'static std::ffi::CStr = c"v24@?0^v8Q16";
    fn invoke() -> *const c_void {
        unsafe extern "C" fn invoke(_block: *mut Literal<Owner>, _bytes: *mut c_void, _length: usize) {}
        (invoke as unsafe extern "C" fn(_, _, _)) as *const c_void
    }
}

struct Described<W>(std::marker::PhantomData<W>);

impl<W: Work> Described<W> {
    const DESCRIPTOR: &'static Descriptor = &Descriptor {
        reserved: 0,
        size: size_of::<Literal<W>>() as c_ulong,
        copy: copy::<W>,
        dispose: dispose::<W>,
        signature: W::SIGNATURE.as_ptr(),
    };
}

unsafe extern "C" fn copy<W>(target: *mut c_void, source: *const c_void) {
    let (target, source) = (target.cast::<Literal<W>>(), source.cast::<Literal<W>>());
    // SAFETY: the runtime has copied the literal's bytes from `source`, which lives, to `target`; the target's count is not yet
    // its own, so it is overwritten, not dropped.
    unsafe { (&raw mut (*target).work).write((*source).work.clone()) }
}

unsafe extern "C" fn dispose<W>(block: *mut c_void) {
    // SAFETY: the runtime calls this once for each copy, when its last reference goes.
    unsafe { ManuallyDrop::drop(&mut (*block.cast::<Literal<W>>()).work) }
}

impl Blocks {
    pub(crate) fn load(search: &mut Search<'_>) -> Option<Self> {
        let functions = BlockFunctions::load(search);
        let stack = search.data("_NSConcreteStackBlock");
        Some(Self { functions: functions?, stack: stack? })
    }

    /// A block on the heap that runs `work`.
    pub(crate) fn make<W: Work>(&self, work: W) -> Result<Block, SysError> {
        let mut literal = Literal {
            class: self.stack.as_ptr(),
            flags: HAS_COPY_DISPOSE | HAS_SIGNATURE,
            reserved: 0,
            invoke: W::invoke(),
            descriptor: std::ptr::from_ref(Described::<W>::DESCRIPTOR),
            work: ManuallyDrop::new(Arc::new(work)),
        };
        // SAFETY: the literal has the layout of the block specification and lives during the call.
        let copied = unsafe { (self.functions.copy.call)((&raw const literal).cast()) };
        // SAFETY: the literal's own count is dropped once, after the copy has taken its own.
        unsafe { ManuallyDrop::drop(&mut literal.work) };
        let raw = NonNull::new(copied).ok_or(SysError::Nothing { call: self.functions.copy.name })?;
        Ok(Block { raw, blocks: *self })
    }
}

/// A block that we own.
pub(crate) struct Block {
    raw: NonNull<c_void>,
    blocks: Blocks,
}

// SAFETY: what it runs is Send and Sync, and the block runtime counts references atomically.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    pub(crate) fn as_ptr(&self) -> *mut c_void {
        self.raw.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the reference that `copy` gave is given back once.
        unsafe { (self.blocks.functions.release.call)(self.raw.as_ptr()) }
    }
}
