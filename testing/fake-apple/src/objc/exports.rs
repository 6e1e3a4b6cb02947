//! The runtime's C functions.

use super::{Class, Id, RuntimeMethod, Sel, class, pool};
use crate::counters::{COUNTERS, count};
use crate::faults;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null;

/// # Safety
/// `name` is null or a string that ends in zero.
unsafe fn text<'a>(name: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's promise.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}

/// The class of a name, or nil.
///
/// # Safety
/// `name` is null or a string that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn objc_getClass(name: *const c_char) -> Id {
    // SAFETY: the caller's promise.
    let Some(name) = (unsafe { text(name) }) else { return Id::NIL };
    let name = name.to_string_lossy();
    if faults::take_named("missing-class", &name) {
        return Id::NIL;
    }
    class(&name).map_or(Id::NIL, Class::id)
}

/// As [`objc_getClass`].
///
/// # Safety
/// `name` is null or a string that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn objc_lookUpClass(name: *const c_char) -> Id {
    // SAFETY: the caller's promise.
    unsafe { objc_getClass(name) }
}

/// The selector of a name.
///
/// # Safety
/// `name` is a string that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sel_registerName(name: *const c_char) -> Sel {
    // SAFETY: the caller's promise.
    unsafe { text(name) }.map_or(Sel(null()), Sel::new)
}

/// The name of a selector.
#[unsafe(no_mangle)]
pub extern "C" fn sel_getName(selector: Sel) -> *const c_char {
    selector.0
}

/// Keeps an object.
#[unsafe(no_mangle)]
pub extern "C" fn objc_retain(id: Id) -> Id {
    if !id.is_nil() {
        count(&COUNTERS.retains);
    }
    if super::block::is_block(id) {
        // SAFETY: its class says that it is a block.
        return Id::from_address(unsafe { super::_Block_copy(id.address().cast()) }.cast());
    }
    id.retain()
}

/// Gives an object back.
#[unsafe(no_mangle)]
pub extern "C" fn objc_release(id: Id) {
    if !id.is_nil() {
        count(&COUNTERS.releases);
    }
    if super::block::is_block(id) {
        // SAFETY: its class says that it is a block.
        return unsafe { super::_Block_release(id.address().cast()) };
    }
    id.release();
}

/// Gives an object back when the pool is popped.
#[unsafe(no_mangle)]
pub extern "C" fn objc_autorelease(id: Id) -> Id {
    super::autorelease(id)
}

/// Keeps an object that a method gave autoreleased.
#[unsafe(no_mangle)]
pub extern "C" fn objc_retainAutoreleasedReturnValue(id: Id) -> Id {
    objc_retain(id)
}

/// A new object without a body.
#[unsafe(no_mangle)]
pub extern "C" fn objc_alloc(class: Id) -> Id {
    class.as_class().map_or(Id::NIL, |class| Id::empty(class).into_id())
}

/// Opens a pool.
#[unsafe(no_mangle)]
pub extern "C" fn objc_autoreleasePoolPush() -> *mut c_void {
    pool::push()
}

/// Closes a pool.
#[unsafe(no_mangle)]
pub extern "C" fn objc_autoreleasePoolPop(token: *mut c_void) {
    pool::pop(token);
}

/// The class of an object, or the class of a class.
#[unsafe(no_mangle)]
pub extern "C" fn object_getClass(id: Id) -> Id {
    id.class().map_or(Id::NIL, Class::id)
}

/// The name of an object's class.
#[unsafe(no_mangle)]
pub extern "C" fn object_getClassName(id: Id) -> *const c_char {
    id.class().map_or(c"nil".as_ptr(), |class| class.c_name.as_ptr())
}

/// # Safety
/// `class` is nil or a class.
unsafe fn class_of(class: Id) -> Option<&'static Class> {
    // SAFETY: the caller's promise; classes are never freed.
    unsafe { class.address().cast::<Class>().as_ref() }
}

/// The name of a class.
///
/// # Safety
/// `class` is nil or a class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn class_getName(class: Id) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { class_of(class) }.map_or(c"nil".as_ptr(), |class| class.c_name.as_ptr())
}

/// The class above.
///
/// # Safety
/// `class` is nil or a class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn class_getSuperclass(class: Id) -> Id {
    // SAFETY: the caller's promise.
    unsafe { class_of(class) }.and_then(|class| class.superclass).map_or(Id::NIL, Class::id)
}

/// A method of a class's objects, or null.
///
/// # Safety
/// `class` is nil or a class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn class_getInstanceMethod(class: Id, selector: Sel) -> *const RuntimeMethod {
    // SAFETY: the caller's promise.
    unsafe { class_of(class) }.and_then(|class| class.find(selector)).map_or(null(), std::ptr::from_ref)
}

/// A method of a class itself, or null.
///
/// # Safety
/// `class` is nil or a class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn class_getClassMethod(class: Id, selector: Sel) -> *const RuntimeMethod {
    // SAFETY: the caller's promise.
    let class = unsafe { class_of(class) }.and_then(Class::metaclass);
    class.and_then(|class| class.find(selector)).map_or(null(), std::ptr::from_ref)
}

/// Whether objects of a class answer a selector.
///
/// # Safety
/// `class` is nil or a class.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn class_respondsToSelector(class: Id, selector: Sel) -> bool {
    // SAFETY: the caller's promise.
    unsafe { class_of(class) }.is_some_and(|class| class.find(selector).is_some())
}

/// The encoding of a method's type.
///
/// # Safety
/// `method` is null or from [`class_getInstanceMethod`] or [`class_getClassMethod`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn method_getTypeEncoding(method: *const RuntimeMethod) -> *const c_char {
    // SAFETY: the caller's promise; methods are never freed.
    unsafe { method.as_ref() }.map_or(null(), |method| method.encoding.as_ptr())
}

/// The selector of a method.
///
/// # Safety
/// As [`method_getTypeEncoding`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn method_getName(method: *const RuntimeMethod) -> Sel {
    // SAFETY: the caller's promise; methods are never freed.
    unsafe { method.as_ref() }.map_or(Sel(null()), |method| method.selector)
}

/// The function of a method.
///
/// # Safety
/// As [`method_getTypeEncoding`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn method_getImplementation(method: *const RuntimeMethod) -> *const c_void {
    // SAFETY: the caller's promise; methods are never freed.
    unsafe { method.as_ref() }.map_or(null(), |method| std::ptr::with_exposed_provenance(method.imp))
}
