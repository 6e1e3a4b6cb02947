//! The C types of messages, and the letters by which the runtime calls them.

use std::ffi::{c_char, c_void};

/// An object, or nil.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Id(pub(crate) *mut c_void);

/// A registered selector.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sel(pub(crate) *mut c_void);

/// A class, which is an object too.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClassRef(pub(crate) *mut c_void);

/// A block as an argument.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockRef(pub(crate) *mut c_void);

/// An `IOSurfaceRef`.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct SurfaceRef(pub(crate) *mut c_void);

/// A `BOOL`: a byte in every ABI, whatever C calls it; as a result, anything but zero is true.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bool(u8);

// SAFETY: addresses of selectors; the runtime never frees one.
unsafe impl Send for Sel {}
// SAFETY: as above.
unsafe impl Sync for Sel {}
// SAFETY: addresses of classes; classes are never unloaded, since their libraries are not.
unsafe impl Send for ClassRef {}
// SAFETY: as above.
unsafe impl Sync for ClassRef {}

impl Id {
    pub(crate) const NIL: Self = Self(std::ptr::null_mut());

    pub(crate) fn is_nil(self) -> bool {
        self.0.is_null()
    }
}

impl ClassRef {
    /// The class as the receiver of a message.
    pub(crate) fn id(self) -> Id {
        Id(self.0)
    }
}

impl Bool {
    pub(crate) fn is_true(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Self(u8::from(value))
    }
}

/// A C type and the ways in which the runtime writes it.
pub(crate) trait Encode {
    /// The letters that stand for this type, the usual ones first.
    const LETTERS: &'static [&'static str];
}

macro_rules! encode {
    ($($type:ty: $($letters:literal),+;)*) => { $(impl Encode for $type { const LETTERS: &'static [&'static str] = &[$($letters),+]; })* };
}
encode! {
    (): "v";
    Id: "@";
    Sel: ":";
    ClassRef: "#";
    // A plain object is what a class that declares its blocks as `id` shows.
    BlockRef: "@?", "@";
    SurfaceRef: "^{__IOSurface}", "^v", "@";
    // `bool` on arm64, `signed char` on Intel Macs.
    Bool: "B", "c";
    i8: "c", "C";
    u32: "I";
    i64: "q";
    u64: "Q";
    f64: "d";
    *mut Id: "^@";
    *const Id: "^@";
    *const c_char: "*";
    *const c_void: "^v";
    *mut c_void: "^v";
}

/// A method's function type: receiver and selector first.
pub(crate) trait Signature: Copy {
    /// The types of the result and of every argument after the selector.
    fn types() -> Vec<&'static [&'static str]>;
}

macro_rules! signature {
    ($($argument:ident)*) => {
        impl<R: Encode, $($argument: Encode),*> Signature for unsafe extern "C" fn(Id, Sel, $($argument),*) -> R {
            fn types() -> Vec<&'static [&'static str]> {
                vec![R::LETTERS, Id::LETTERS, Sel::LETTERS, $($argument::LETTERS),*]
            }
        }
    };
}
signature!();
signature!(A);
signature!(A B);
signature!(A B C);
signature!(A B C D);
signature!(A B C D E);
signature!(A B C D E F);
signature!(A B C D E F G);

/// Whether a method's encoding, such as `B52@0:8@16I24^@28`, is that of `S`. Offsets and qualifiers are not looked at, nor what
/// structures hold.
pub(crate) fn agrees<S: Signature>(encoding: &str) -> bool {
    let (found, known) = (split(encoding), S::types());
    found.len() == known.len() && found.iter().zip(&known).all(|(found, known)| known.contains(&found.as_str()))
}

/// The encoding that `S` has, without offsets.
pub(crate) fn expected<S: Signature>() -> String {
    S::types().iter().filter_map(|letters| letters.first()).copied().collect()
}

/// The types of an encoding, one after the other.
fn split(encoding: &str) -> Vec<String> {
    let mut rest = encoding.chars().peekable();
    let mut types = Vec::new();
    while rest.peek().is_some() {
        let one = one_type(&mut rest);
        if !one.is_empty() {
            types.push(one);
        }
        while rest.next_if(|letter| letter.is_ascii_digit() || *letter == '-' || *letter == '+').is_some() {}
    }
    types
}

fn one_type(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    while rest.next_if(|letter| "rnNoORVA".contains(*letter)).is_some() {}
    match rest.next() {
        Some('^') => format!("^{}", one_type(rest)),
        Some('@') if rest.next_if_eq(&'?').is_some() => {
            skip_nested(rest, '<', '>');
            "@?".to_string()
        }
        Some('@') => {
            // A class name in quotes.
            if rest.next_if_eq(&'"').is_some() {
                rest.by_ref().find(|letter| *letter == '"');
            }
            "@".to_string()
        }
        Some(open @ ('{' | '(' | '[')) => {
            let close = if open == '{' {
                '}'
            } else if open == '(' {
                ')'
            } else {
                ']'
            };
            let mut name = String::new();
            while let Some(letter) = rest.next_if(|letter| *letter != '=' && *letter != close) {
                name.push(letter);
            }
            skip_to_end(rest, open, close);
            format!("{open}{name}{close}")
        }
        Some(letter) => letter.to_string(),
        None => String::new(),
    }
}

fn skip_nested(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, open: char, close: char) {
    if rest.next_if_eq(&open).is_some() {
        skip_to_end(rest, open, close);
    }
}

/// Skips what is left of a group that is open, with the groups in it.
fn skip_to_end(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, open: char, close: char) {
    let mut depth = 1;
    while depth > 0 {
        match rest.next() {
            Some(letter) if letter == open => depth += 1,
            Some(letter) if letter == close => depth -= 1,
            Some(_) => {}
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Evaluate = unsafe extern "C" fn(Id, Sel, Id, Id, Id, u32, *mut Id) -> Bool;

    #[test]
    fn encodings_that_public_sources_saw_agree_with_our_types() {
        // Type encodings as the project Espresso (christopherkarani) printed them on an M3 Max.
        assert!(agrees::<Evaluate>("B52@0:8@16@24@32I40^@44"));
        assert!(agrees::<unsafe extern "C" fn(Id, Sel, Id, Id, u32, *mut Id) -> Bool>("B44@0:8@16@24I32^@36"));
        assert!(agrees::<unsafe extern "C" fn(Id, Sel, BlockRef)>("v24@0:8@?16"));
        assert!(agrees::<unsafe extern "C" fn(Id, Sel, SurfaceRef) -> Id>("@24@0:8^{__IOSurface=}16"));
        assert!(agrees::<unsafe extern "C" fn(Id, Sel) -> *const c_char>("r*16@0:8"));
        assert!(agrees::<unsafe extern "C" fn(Id, Sel, *const Id, *const Id, u64) -> Id>("@40@0:8r^@16r^@24Q32"));
        assert!(agrees::<unsafe extern "C" fn(Id, Sel, Id) -> Id>("@\"NSData\"24@0:8@\"NSString\"16"));
        assert!(agrees::<unsafe extern "C" fn(Id, Sel, BlockRef)>("v24@0:8@?<v@?^vQ>16"));
    }

    #[test]
    fn another_width_order_or_number_of_arguments_does_not_agree() {
        assert!(!agrees::<Evaluate>("B56@0:8@16@24@32Q40^@48"));
        assert!(!agrees::<Evaluate>("B52@0:8@16@24I32@36^@44"));
        assert!(!agrees::<Evaluate>("B44@0:8@16@24I32^@36"));
        assert!(!agrees::<Evaluate>("v52@0:8@16@24@32I40^@44"));
        assert!(!agrees::<Evaluate>(""));
        assert_eq!(expected::<Evaluate>(), "B@:@@@I^@");
        // A broken encoding ends.
        assert!(!agrees::<Evaluate>("{a={b"));
        assert!(!agrees::<Evaluate>("^"));
    }
}
