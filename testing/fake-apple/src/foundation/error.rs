//! Errors.

use super::{dictionary, string, text_of, value};
use crate::interface::Fault;
use crate::objc::{ClassSpec, ErrorOut, Id, Method, Sel, Strong, method};

/// Body of an error.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Domain.
    pub domain: String,
    /// Number.
    pub code: i64,
    /// What `localizedDescription` says.
    pub text: String,
    info: Strong,
}

/// A failure as an error object.
pub fn error(fault: &Fault) -> Strong {
    let info = dictionary([("NSLocalizedDescription", string(&fault.text))]);
    Id::make("NSError", Failure { domain: fault.domain.clone(), code: fault.code, text: fault.text.clone(), info })
}

/// Puts an error where a method was told to, autoreleased; nowhere if it was told null.
pub fn put_error(out: ErrorOut, fault: &Fault) {
    if !out.0.is_null() {
        let made = error(fault).autoreleased();
        // SAFETY: not null, so a place for an error by the method's type.
        unsafe { out.0.write(made) };
    }
}

extern "C" fn make(_: Id, _: Sel, domain: Id, code: isize, info: Id) -> Id {
    let domain = text_of(domain).unwrap_or_default().to_string();
    let code = i64::try_from(code).unwrap_or_default();
    let said = value(info, "NSLocalizedDescription").and_then(|text| text_of(text.id()).map(str::to_string));
    let text = said.unwrap_or_else(|| format!("The operation couldn’t be completed. ({domain} error {code}.)"));
    let info = if info.is_nil() { dictionary([]) } else { Strong::keep(info) };
    Id::make("NSError", Failure { domain, code, text, info }).autoreleased()
}

extern "C" fn domain(this: Id, _: Sel) -> Id {
    this.body::<Failure>().map_or(Id::NIL, |failure| string(&failure.domain).autoreleased())
}

extern "C" fn code(this: Id, _: Sel) -> isize {
    this.body::<Failure>().and_then(|failure| isize::try_from(failure.code).ok()).unwrap_or_default()
}

extern "C" fn text(this: Id, _: Sel) -> Id {
    this.body::<Failure>().map_or(Id::NIL, |failure| string(&failure.text).autoreleased())
}

extern "C" fn info(this: Id, _: Sel) -> Id {
    this.body::<Failure>().map_or(Id::NIL, |failure| failure.info.id())
}

extern "C" fn nothing(_: Id, _: Sel) -> Id {
    Id::NIL
}

static METHODS: &[Method] = &[
    method!("domain", domain, 0),
    method!("code", code, 0),
    method!("localizedDescription", text, 0),
    method!("localizedFailureReason", nothing, 0),
    method!("userInfo", info, 0),
];

pub(super) static SPECS: &[ClassSpec] = &[ClassSpec {
    name: "NSError",
    superclass: "NSObject",
    class_methods: &[method!("errorWithDomain:code:userInfo:", make, 3)],
    methods: METHODS,
}];
