//! `_ANEDeviceInfo`: what engine there is.

use crate::foundation::string;
use crate::objc::{ClassSpec, Id, Method, Sel, method};
use crate::settings;

fn engine() -> &'static str {
    settings::current().chip().map_or("h13", |chip| chip.1)
}

/// "h16" on M4, for example (maderix/ANE pull request 50).
extern "C" fn sub_type(_: Id, _: Sel) -> Id {
    string(engine()).autoreleased()
}

extern "C" fn has_engine(_: Id, _: Sel) -> bool {
    true
}

/// Two on an Ultra (ncdrone/rustane pull request 12), one elsewhere.
extern "C" fn engines(_: Id, _: Sel) -> u32 {
    if settings::current().chip.ends_with("ultra") { 2 } else { 1 }
}

extern "C" fn build(_: Id, _: Sel) -> Id {
    string(&settings::current().os_build).autoreleased()
}

extern "C" fn is_virtual(_: Id, _: Sel) -> bool {
    false
}

static CLASS_METHODS: &[Method] = &[
    method!("aneSubType", sub_type, 0),
    method!("hasANE", has_engine, 0),
    method!("numANEs", engines, 0),
    method!("buildVersion", build, 0),
    method!("isVirtualMachine", is_virtual, 0),
];

pub(super) static SPECS: &[ClassSpec] =
    &[ClassSpec { name: "_ANEDeviceInfo", superclass: "NSObject", class_methods: CLASS_METHODS, methods: &[] }];
