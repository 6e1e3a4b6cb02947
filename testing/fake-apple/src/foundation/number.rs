//! Numbers.

use crate::objc::{ClassSpec, Id, Method, Sel, Strong, method};
use std::ffi::c_char;

/// Body of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Whole.
    Integer(i64),
    /// Whole and larger than the former holds.
    Large(u64),
    /// Not whole.
    Real(f64),
}

impl std::fmt::Display for Number {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(formatter),
            Self::Large(value) => value.fmt(formatter),
            Self::Real(value) => value.fmt(formatter),
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
impl Number {
    /// As a signed integer, as C converts.
    pub fn signed(self) -> i64 {
        match self {
            Self::Integer(value) => value,
            Self::Large(value) => value.cast_signed(),
            Self::Real(value) => value as i64,
        }
    }

    /// As a double, as C converts.
    pub fn real(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Large(value) => value as f64,
            Self::Real(value) => value,
        }
    }
}

/// A whole number.
pub fn integer(value: i64) -> Strong {
    Id::make("NSNumber", Number::Integer(value))
}

/// The value of a number; anything else has none.
pub fn number_of(id: Id) -> Option<Number> {
    id.body::<Number>().copied()
}

macro_rules! whole {
    ($($make:ident $read:ident $type:ty;)*) => {
        $(
            extern "C" fn $make(_: Id, _: Sel, value: $type) -> Id {
                #[allow(clippy::unnecessary_fallible_conversions, irrefutable_let_patterns)]
                let body = i64::try_from(value).map_or_else(|_| Number::Large(u64::try_from(value).unwrap_or_default()), Number::Integer);
                Id::make("NSNumber", body).autoreleased()
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            extern "C" fn $read(this: Id, _: Sel) -> $type {
                number_of(this).map_or(0, Number::signed) as $type
            }
        )*
    };
}

whole! {
    make_i8 read_i8 i8;
    make_i16 read_i16 i16;
    make_i32 read_i32 i32;
    make_u32 read_u32 u32;
    make_i64 read_i64 i64;
    make_u64 read_u64 u64;
    make_isize read_isize isize;
    make_usize read_usize usize;
}

extern "C" fn make_bool(_: Id, _: Sel, value: bool) -> Id {
    integer(value.into()).autoreleased()
}

extern "C" fn read_bool(this: Id, _: Sel) -> bool {
    number_of(this).is_some_and(|number| number.signed() != 0)
}

extern "C" fn make_f32(_: Id, _: Sel, value: f32) -> Id {
    Id::make("NSNumber", Number::Real(value.into())).autoreleased()
}

extern "C" fn make_f64(_: Id, _: Sel, value: f64) -> Id {
    Id::make("NSNumber", Number::Real(value)).autoreleased()
}

#[allow(clippy::cast_possible_truncation)]
extern "C" fn read_f32(this: Id, _: Sel) -> f32 {
    number_of(this).map_or(0.0, Number::real) as f32
}

extern "C" fn read_f64(this: Id, _: Sel) -> f64 {
    number_of(this).map_or(0.0, Number::real)
}

extern "C" fn kind(this: Id, _: Sel) -> *const c_char {
    match number_of(this) {
        Some(Number::Real(_)) => c"d".as_ptr(),
        Some(Number::Large(_)) => c"Q".as_ptr(),
        _ => c"q".as_ptr(),
    }
}

static CLASS_METHODS: &[Method] = &[
    method!("numberWithChar:", make_i8, 1),
    method!("numberWithShort:", make_i16, 1),
    method!("numberWithInt:", make_i32, 1),
    method!("numberWithUnsignedInt:", make_u32, 1),
    method!("numberWithLongLong:", make_i64, 1),
    method!("numberWithUnsignedLongLong:", make_u64, 1),
    method!("numberWithLong:", make_isize, 1),
    method!("numberWithUnsignedLong:", make_usize, 1),
    method!("numberWithInteger:", make_isize, 1),
    method!("numberWithUnsignedInteger:", make_usize, 1),
    method!("numberWithBool:", make_bool, 1),
    method!("numberWithFloat:", make_f32, 1),
    method!("numberWithDouble:", make_f64, 1),
];

static METHODS: &[Method] = &[
    method!("charValue", read_i8, 0),
    method!("shortValue", read_i16, 0),
    method!("intValue", read_i32, 0),
    method!("unsignedIntValue", read_u32, 0),
    method!("longLongValue", read_i64, 0),
    method!("unsignedLongLongValue", read_u64, 0),
    method!("longValue", read_isize, 0),
    method!("unsignedLongValue", read_usize, 0),
    method!("integerValue", read_isize, 0),
    method!("unsignedIntegerValue", read_usize, 0),
    method!("boolValue", read_bool, 0),
    method!("floatValue", read_f32, 0),
    method!("doubleValue", read_f64, 0),
    method!("objCType", kind, 0),
];

pub(super) static SPECS: &[ClassSpec] =
    &[ClassSpec { name: "NSNumber", superclass: "NSObject", class_methods: CLASS_METHODS, methods: METHODS }];
