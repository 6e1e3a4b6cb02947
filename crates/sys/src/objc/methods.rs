//! Tables of methods: each with its class, its selector and its one function type.

use super::Core;
use super::types::{ClassRef, Sel, Signature, agrees, expected};
use crate::SysError;
use crate::library::Search;

/// A method, ready to be sent.
pub(crate) struct Method<F> {
    send: F,
    selector: Sel,
    /// As `-[Class selector]`.
    pub(crate) name: &'static str,
    /// The encoding that the runtime reports, where it is not the one that we know.
    mismatch: Option<String>,
}

impl<F: Signature> Method<F> {
    /// The function to call, with the receiver first, and the selector to give it second.
    ///
    /// # Errors
    /// [`SysError::Encoding`] in debug builds, where the runtime reports other types.
    pub(crate) fn ready(&self) -> Result<(F, Sel), SysError> {
        match &self.mismatch {
            Some(found) if cfg!(debug_assertions) => {
                Err(SysError::Encoding { method: self.name.to_string(), expected: expected::<F>(), found: found.clone() })
            }
            _ => Ok((self.send, self.selector)),
        }
    }

    /// Looks the method up on its class.
    pub(crate) fn find(
        core: &Core,
        search: &mut Search<'_>,
        class: Option<ClassRef>,
        of_class: bool,
        selector: &str,
        name: &'static str,
        required: bool,
    ) -> Option<Self> {
        // A missing class is noted once, not once more for each of its methods.
        let encoding = core.encoding(class?, of_class, selector);
        let mismatch = encoding.clone().filter(|encoding| !agrees::<F>(encoding));
        search.note_method(name, required, encoding.is_some(), mismatch.as_ref().map(|found| (expected::<F>(), found.clone())));
        encoding?;
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        // SAFETY: `objc_msgSend` is called as the function that it forwards to, which `F` is the type of; `F` is a function
        // pointer, as `Signature` has no other implementations.
        let send = unsafe { std::mem::transmute_copy(&core.message) };
        Some(Self { send, selector: core.selector(selector)?, name, mismatch })
    }
}

/// Declares the methods of a class: `+` for those of the class itself. `load` notes everything that is missing.
macro_rules! methods {
    ($(#[$meta:meta])* $visibility:vis struct $table:ident for $class:literal {
        $($field:ident: $kind:tt $selector:literal ($($name:ident: $argument:ty),*) $(-> $result:ty)?;)*
        $(@optional { $($optional:ident: $soft_kind:tt $soft:literal ($($soft_name:ident: $soft_argument:ty),*) $(-> $soft_result:ty)?;)* })?
    }) => {
        $(#[$meta])*
        $visibility struct $table {
            // Tables without methods of the class itself need it for loading alone.
            #[allow(dead_code)]
            pub(crate) class: $crate::objc::types::ClassRef,
            $(pub(crate) $field: $crate::objc::methods::Method<unsafe extern "C" fn($crate::objc::types::Id, $crate::objc::types::Sel, $($argument),*) $(-> $result)?>,)*
            $($(pub(crate) $optional: Option<$crate::objc::methods::Method<unsafe extern "C" fn($crate::objc::types::Id, $crate::objc::types::Sel, $($soft_argument),*) $(-> $soft_result)?>>,)*)?
        }

        impl $table {
            /// The table, or nothing where the class or a required method is missing; `search` has noted which.
            pub(crate) fn load(core: &$crate::objc::Core, search: &mut $crate::library::Search<'_>, required: bool) -> Option<Self> {
                use $crate::objc::methods::{Method, is_class_method};
                let class = core.class($class);
                search.note_class($class, required, class.is_some());
                $(let $field = Method::find(core, search, class, is_class_method!($kind), $selector,
                    concat!(stringify!($kind), "[", $class, " ", $selector, "]"), required);)*
                $($(let $optional = Method::find(core, search, class, is_class_method!($soft_kind), $soft,
                    concat!(stringify!($soft_kind), "[", $class, " ", $soft, "]"), false);)*)?
                Some(Self { class: class?, $($field: $field?,)* $($($optional,)*)? })
            }
        }
    };
}
pub(crate) use methods;

macro_rules! is_class_method {
    (+) => {
        true
    };
    (-) => {
        false
    };
}
pub(crate) use is_class_method;
