//! The fake's own symbols: settings in, counters out.

use crate::{counters, settings};
use serde_json::{Value, json};
use std::ffi::{CStr, CString, c_char};

/// Answers a request in JSON with JSON, which [`fake_apple_free`] frees.
///
/// `{"set": {..}}` changes settings, `{"get": "settings"}`, `{"get": "counters"}` and `{"get": "diagnostics"}` give them, `{"reset": true}` sets counters to zero
/// and settings to those of the environment. A refused request answers `{"error": text}`.
///
/// # Safety
/// `request` is null or a string that ends in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_apple_control(request: *const c_char) -> *mut c_char {
    let answer = if request.is_null() {
        Err("no request".to_string())
    } else {
        // SAFETY: not null, so the caller's string.
        let text = unsafe { CStr::from_ptr(request) }.to_string_lossy();
        serde_json::from_str(&text).map_err(|error| error.to_string()).and_then(|request| answer(&request))
    };
    let answer = answer.unwrap_or_else(|error| json!({ "error": error }));
    CString::new(answer.to_string()).map_or(std::ptr::null_mut(), CString::into_raw)
}

/// Frees an answer.
///
/// # Safety
/// `answer` is null or came from [`fake_apple_control`] and was not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_apple_free(answer: *mut c_char) {
    if !answer.is_null() {
        // SAFETY: made by `into_raw` above.
        drop(unsafe { CString::from_raw(answer) });
    }
}

fn answer(request: &Value) -> Result<Value, String> {
    if let Some(wanted) = request.get("set") {
        settings::change(&wanted.to_string())?;
        return Ok(json!({}));
    }
    if request.get("reset").and_then(Value::as_bool) == Some(true) {
        settings::reset();
        counters::reset();
        return Ok(json!({}));
    }
    match request.get("get").and_then(Value::as_str) {
        Some("counters") => Ok(counters::json()),
        Some("diagnostics") => Ok(crate::diagnostics::taken().into()),
        Some("settings") => serde_json::to_value(&*settings::current()).map_err(|error| error.to_string()),
        _ => Err(format!("unknown request {request}; known: set, reset, get counters, get settings")),
    }
}
