//! Addresses of files.

use super::root::wrong;
use super::{string, text_of};
use crate::objc::{ClassSpec, Id, Method, Sel, Strong, method};

/// Body of an address: the path.
struct Url(String);

/// The address of a path.
pub fn url(path: &str) -> Strong {
    Id::make("NSURL", Url(path.to_string()))
}

/// The path of an address; anything else has none.
pub fn path_of(id: Id) -> Option<&'static str> {
    id.body::<Url>().map(|url| url.0.as_str())
}

extern "C" fn of_path(_: Id, _: Sel, path: Id) -> Id {
    let Some(text) = text_of(path) else {
        wrong("fileURLWithPath:", path, "NSString");
        return Id::NIL;
    };
    url(text).autoreleased()
}

extern "C" fn of_folder(this: Id, selector: Sel, path: Id, _is_folder: bool) -> Id {
    of_path(this, selector, path)
}

extern "C" fn path(this: Id, _: Sel) -> Id {
    path_of(this).map_or(Id::NIL, |path| string(path).autoreleased())
}

extern "C" fn absolute(this: Id, _: Sel) -> Id {
    path_of(this).map_or(Id::NIL, |path| string(&format!("file://{path}")).autoreleased())
}

extern "C" fn appending(this: Id, _: Sel, more: Id) -> Id {
    let (Some(path), Some(more)) = (path_of(this), text_of(more)) else { return Id::NIL };
    url(&format!("{}/{more}", path.trim_end_matches('/'))).autoreleased()
}

static CLASS_METHODS: &[Method] = &[method!("fileURLWithPath:", of_path, 1), method!("fileURLWithPath:isDirectory:", of_folder, 2)];

static METHODS: &[Method] =
    &[method!("path", path, 0), method!("absoluteString", absolute, 0), method!("URLByAppendingPathComponent:", appending, 1)];

pub(super) static SPECS: &[ClassSpec] =
    &[ClassSpec { name: "NSURL", superclass: "NSObject", class_methods: CLASS_METHODS, methods: METHODS }];
