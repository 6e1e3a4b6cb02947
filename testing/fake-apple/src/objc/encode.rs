//! Type encodings of methods, made from the Rust types that implement them: "B44@0:8@16@24I32^@36".
//!
//! The letters are those of Apple's public "Objective-C Runtime Programming Guide: Type Encodings". An argument takes at least
//! four bytes of the frame and no padding; encodings printed by christopherkarani/Espresso from macOS 15 show this.

use super::{Id, Object, Sel};
use std::ffi::{c_char, c_void};

/// A type that a method can take or give.
pub trait Encode {
    /// Its letters.
    const CODE: &'static str;
    /// Its bytes.
    const SIZE: usize;
}

/// A class as an argument or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ClassRef(pub *const super::Class);

/// A block as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct BlockRef(pub *const super::Block);

/// An `IOSurfaceRef`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct SurfaceRef(pub *const Object);

/// Where a method puts its error: an `NSError **`, which may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ErrorOut(pub *mut Id);

macro_rules! encode {
    ($($type:ty = $code:literal),* $(,)?) => {
        $(impl Encode for $type {
            const CODE: &'static str = $code;
            const SIZE: usize = size_of::<$type>();
        })*
    };
}

encode! {
    () = "v", bool = "B", i8 = "c", u8 = "C", i16 = "s", u16 = "S", i32 = "i", u32 = "I", i64 = "q", u64 = "Q", usize = "Q",
    isize = "q", f32 = "f", f64 = "d", Id = "@", Sel = ":", ClassRef = "#", BlockRef = "@?", SurfaceRef = "^{__IOSurface=}",
    ErrorOut = "^@", *const c_char = "r*", *mut c_char = "*", *const c_void = "r^v", *mut c_void = "^v", *const Id = "r^@",
    *mut Id = "^@", *mut u32 = "^I", *mut *mut c_void = "^^v",
}

/// The encoding of a method with these further arguments.
pub fn encoding(result: &str, arguments: &[(&str, usize)]) -> String {
    let whole = [("@", size_of::<Id>()), (":", size_of::<Sel>())];
    let mut text = String::new();
    let mut offset = 0;
    for (code, size) in whole.iter().chain(arguments) {
        text.push_str(&format!("{code}{offset}"));
        offset += (*size).max(4);
    }
    format!("{result}{offset}{text}")
}
