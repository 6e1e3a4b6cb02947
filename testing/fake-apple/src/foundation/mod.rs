//! The part of Foundation that the engine path uses.

mod array;
mod data;
mod dictionary;
mod error;
mod index_set;
mod number;
mod root;
mod string;
mod url;

pub use array::{Array, array, elements};
pub use data::{bytes_of, data};
pub use dictionary::{Dictionary, dictionary, entries, value};
pub use error::{Failure, error, put_error};
pub use index_set::index_set;
pub use number::{Number, integer, number_of};
pub use root::equal;
pub use string::{string, text_of};
pub use url::{path_of, url};

use crate::objc::{ClassSpec, Id};

/// Classes, each after the one above it.
pub fn specs() -> impl Iterator<Item = &'static ClassSpec> {
    let files = [root::SPECS, string::SPECS, data::SPECS, array::SPECS, dictionary::SPECS, number::SPECS];
    files.into_iter().chain([error::SPECS, url::SPECS, index_set::SPECS]).flatten()
}

/// The path of temporary files, ended by a slash.
pub fn temporary_folder() -> String {
    let mut path = std::env::temp_dir().to_string_lossy().into_owned();
    if !path.ends_with('/') {
        path.push('/');
    }
    path
}

/// The path of temporary files, ended by a slash.
#[unsafe(no_mangle)]
pub extern "C" fn NSTemporaryDirectory() -> Id {
    string(&temporary_folder()).autoreleased()
}
