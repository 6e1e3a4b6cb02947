//! Constants: addresses of objects that are made when the library is loaded, and callbacks that are only named.

use crate::foundation::string;
use std::sync::atomic::{AtomicPtr, Ordering::Release};

macro_rules! strings {
    ($($symbol:ident = $text:literal;)*) => {
        $(
            /// A constant string.
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            pub static $symbol: AtomicPtr<crate::objc::Object> = AtomicPtr::new(std::ptr::null_mut());
        )*

        extern "C" fn prepare() {
            $($symbol.store(string($text).into_id().immortal().address().cast_mut(), Release);)*
        }
    };
}

strings! {
    kIOSurfaceWidth = "IOSurfaceWidth";
    kIOSurfaceHeight = "IOSurfaceHeight";
    kIOSurfaceBytesPerElement = "IOSurfaceBytesPerElement";
    kIOSurfaceBytesPerRow = "IOSurfaceBytesPerRow";
    kIOSurfaceAllocSize = "IOSurfaceAllocSize";
    kIOSurfacePixelFormat = "IOSurfacePixelFormat";
    NSLocalizedDescriptionKey = "NSLocalizedDescription";
    NSUnderlyingErrorKey = "NSUnderlyingError";
}

/// Runs when the library is loaded.
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func,mod_init_funcs"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static PREPARE: extern "C" fn() = prepare;

/// The default allocator.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static kCFAllocatorDefault: usize = 0;

/// Callbacks for keys that are objects: this library knows no other ones.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static kCFTypeDictionaryKeyCallBacks: [usize; 6] = [0; 6];

/// Callbacks for values that are objects.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static kCFTypeDictionaryValueCallBacks: [usize; 5] = [0; 5];

/// Callbacks for elements that are objects.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static kCFTypeArrayCallBacks: [usize; 5] = [0; 5];
