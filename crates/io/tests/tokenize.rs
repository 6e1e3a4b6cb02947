//! Tokenizer limits, on a small tokenizer whose file asks for truncation and padding of its own.
#![cfg(feature = "tokenizers")]

use aneforge_io::{IoError, TextTokenizer};

const SMALL: &str = r#"{
  "version": "1.0",
  "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
  "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null,
              "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
  "added_tokens": [],
  "normalizer": null,
  "pre_tokenizer": {"type": "WhitespaceSplit"},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
                       "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}},
  "decoder": null,
  "model": {"type": "WordLevel", "vocab": {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "a": 4, "b": 5},
            "unk_token": "[UNK]"}
}"#;

#[test]
fn the_files_own_truncation_and_padding_do_not_apply() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, SMALL).unwrap();
    let tokenizer = TextTokenizer::open(&path, 7).unwrap();
    let tokens = tokenizer.encode("a b c a b").unwrap();
    assert_eq!((tokens.ids, tokens.truncated), (vec![1, 4, 5, 3, 4, 5, 2], false));
    assert_eq!(tokens.mask, [1; 7]);
}

#[test]
fn the_limit_counts_special_tokens_and_the_empty_text_has_those_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, SMALL).unwrap();
    let tokenizer = TextTokenizer::open(&path, 7).unwrap();
    let tokens = tokenizer.encode(&"a ".repeat(1000)).unwrap();
    assert_eq!((tokens.ids, tokens.truncated), (vec![1, 4, 4, 4, 4, 4, 2], true));
    assert_eq!(tokenizer.encode("").unwrap().ids, [1, 2]);
}

#[test]
fn a_damaged_tokenizer_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, &SMALL[..200]).unwrap();
    let error = TextTokenizer::open(&path, 7).unwrap_err();
    assert!(matches!(&error, IoError::Tokenizer { .. }) && error.to_string().contains("tokenizer.json"), "{error}");
    assert!(matches!(TextTokenizer::open(folder.path().join("none.json"), 7), Err(IoError::File { action: "read", .. })));
}
