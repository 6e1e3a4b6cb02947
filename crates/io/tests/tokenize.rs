//! Tokenizer limits, on a small tokenizer whose file asks for truncation and padding of its own.
#![cfg(feature = "tokenizers")]

mod common;

use aneforge_io::{IoError, TextTokenizer};
use common::tiny::TOKENIZER;

#[test]
fn the_files_own_truncation_and_padding_do_not_apply() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, TOKENIZER).unwrap();
    let tokenizer = TextTokenizer::open(&path, 7).unwrap();
    let tokens = tokenizer.encode("a b c a b").unwrap();
    assert_eq!((tokens.ids, tokens.truncated), (vec![1, 4, 5, 3, 4, 5, 2], false));
    assert_eq!(tokens.mask, [1; 7]);
}

#[test]
fn the_limit_counts_special_tokens_and_the_empty_text_has_those_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, TOKENIZER).unwrap();
    let tokenizer = TextTokenizer::open(&path, 7).unwrap();
    let tokens = tokenizer.encode(&"a ".repeat(1000)).unwrap();
    assert_eq!((tokens.ids, tokens.truncated), (vec![1, 4, 4, 4, 4, 4, 2], true));
    assert_eq!(tokenizer.encode("").unwrap().ids, [1, 2]);
}

#[test]
fn a_damaged_tokenizer_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, &TOKENIZER[..200]).unwrap();
    let error = TextTokenizer::open(&path, 7).unwrap_err();
    assert!(matches!(&error, IoError::Tokenizer { .. }) && error.to_string().contains("tokenizer.json"), "{error}");
    assert!(matches!(TextTokenizer::open(folder.path().join("none.json"), 7), Err(IoError::File { action: "read", .. })));
}
