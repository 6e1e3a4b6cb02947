//! Writing a file whole: what stood at its name decides how.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // tests

use aneforge_io::write_whole;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};

#[test]
fn a_file_is_replaced_and_nothing_else_is_left_in_its_folder() {
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("result.npy");
    for data in [&b"first"[..], b"the second"] {
        write_whole(&path, data).unwrap();
        assert_eq!(fs::read(&path).unwrap(), data);
    }
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1);
}

#[test]
fn a_link_stays_and_the_file_it_leads_to_is_replaced() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (link, file) = (here.path().join("link"), there.path().join("file"));
    fs::write(&file, b"old").unwrap();
    symlink(&file, &link).unwrap();
    write_whole(&link, b"new").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&file).unwrap(), b"new");
}

#[test]
fn what_is_no_plain_file_is_never_replaced_by_one() {
    // A socket stands for devices, which only root can make: it cannot be opened for writing, so writing fails.
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let error = write_whole(&path, b"data").unwrap_err();
    assert!(error.to_string().contains("socket"), "{error}");
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1);
}
