//! Foundation's values: made, read back, and given back.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use aneforge_sys::SysError;
use aneforge_sys::objc::{Data, Dictionary, Item, Value};
use aneforge_testkit::fake;

#[test]
fn property_lists_come_back_as_they_were_given() {
    let objective_c = common::frameworks().objective_c().unwrap();
    let data = Data::copy_of(&objective_c, &[0, 1, 255]).unwrap();
    let inner = Dictionary::new(&objective_c, &[("Ω", Item::Text("größe".to_string()))]).unwrap();
    let outer = Dictionary::new(
        &objective_c,
        &[
            ("text", Item::Text(String::new())),
            ("whole", Item::Integer(i64::MIN)),
            ("truth", Item::Boolean(true)),
            ("fraction", Item::Real(-0.5)),
            ("bytes", Item::Data(data)),
            ("inner", Item::Dictionary(inner)),
        ],
    )
    .unwrap();
    let value = outer.read().unwrap();
    assert_eq!(value.get("text"), Some(&Value::Text(String::new())));
    assert_eq!(value.get("whole").and_then(Value::integer), Some(i64::MIN));
    assert_eq!(value.get("truth").and_then(Value::integer), Some(1));
    assert_eq!(value.get("fraction"), Some(&Value::Real(-0.5)));
    assert_eq!(value.get("bytes"), Some(&Value::Data(vec![0, 1, 255])));
    assert_eq!(value.get("inner").and_then(|inner| inner.get("Ω")).and_then(Value::text), Some("größe"));
    assert_eq!(value.get("absent"), None);
    drop(outer);
    fake::assert_clean();
}

#[test]
fn an_empty_dictionary_is_one() {
    let objective_c = common::frameworks().objective_c().unwrap();
    let empty = Dictionary::new(&objective_c, &[]).unwrap();
    assert_eq!(empty.read(), Ok(Value::Dictionary(Default::default())));
    let nothing = Data::copy_of(&objective_c, &[]).unwrap();
    assert_eq!(nothing.with(<[u8]>::len), Ok(0));
    drop((empty, nothing));
    fake::assert_clean();
}

#[test]
fn texts_with_a_zero_byte_are_refused() {
    let objective_c = common::frameworks().objective_c().unwrap();
    assert!(matches!(Dictionary::new(&objective_c, &[("a\0b", Item::Integer(1))]), Err(SysError::Text { .. })));
    assert!(matches!(Dictionary::new(&objective_c, &[("a", Item::Text("\0".to_string()))]), Err(SysError::Text { .. })));
    fake::assert_clean();
}

#[test]
fn borrowed_bytes_are_not_copied_and_their_owner_goes_with_the_last_user() {
    let objective_c = common::frameworks().objective_c().unwrap();
    let owner = Arc::new(vec![7u8; 1000]);
    let data = Data::shared(&objective_c, owner.clone()).unwrap();
    assert_eq!(data.with(<[u8]>::as_ptr), Ok(owner.as_ptr()));
    let dictionary = Dictionary::new(&objective_c, &[("data", Item::Data(data.clone()))]).unwrap();
    drop(data);
    assert_eq!(Arc::strong_count(&owner), 2);
    assert_eq!(dictionary.read().unwrap().get("data"), Some(&Value::Data(vec![7; 1000])));
    drop(dictionary);
    assert_eq!(Arc::strong_count(&owner), 1);
    fake::assert_clean();
}

#[test]
fn handles_count_on_many_threads() {
    let objective_c = common::frameworks().objective_c().unwrap();
    let dictionary = Dictionary::new(&objective_c, &[("number", Item::Integer(5))]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let dictionary = dictionary.clone();
            scope.spawn(move || {
                for _ in 0..200 {
                    assert_eq!(dictionary.clone().read().unwrap().get("number").and_then(Value::integer), Some(5));
                }
            });
        }
    });
    drop(dictionary);
    fake::assert_clean();
}
