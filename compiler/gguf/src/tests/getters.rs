//! Typed access to metadata.

use super::super::{GgufError, Metadata, StrList};
use super::sample;

fn metadata() -> Metadata {
    sample().header().unwrap().metadata().clone()
}

#[test]
fn integers_of_any_width_that_fit() {
    let m = metadata();
    assert_eq!(m.get_u32("a.u8").unwrap(), Some(200));
    assert_eq!(m.require_u32("a.u16").unwrap(), 60_000);
    assert_eq!(m.require_u64("a.u64").unwrap(), u64::MAX);
    assert_eq!(m.require_i32("a.i8").unwrap(), -3);
    assert_eq!(m.require_i64("a.i64").unwrap(), i64::MIN);
    assert_eq!(m.require_array_u64("v.u16").unwrap(), [1, 2, 3]);
    assert_eq!(m.get_u32("absent").unwrap(), None);
}

#[test]
fn floats_booleans_and_strings() {
    let m = metadata();
    assert_eq!(m.require_f32("a.f32").unwrap(), 1.5);
    assert_eq!(m.require_f32("a.f64").unwrap(), -0.1);
    assert!(m.require_bool("a.bool").unwrap());
    assert_eq!(m.require_str("general.architecture").unwrap(), "llama");
    assert_eq!(m.require_array_bool("v.bool").unwrap(), [true, false]);
    assert_eq!(m.require_array_f32("v.f32").unwrap(), [0.5, -0.5]);
    assert_eq!(
        m.require_array_str("v.str").unwrap(),
        &["<s>", "", "þorn"].into_iter().collect::<StrList>()
    );
}

#[test]
fn per_layer_values_broadcast_or_match() {
    let m = metadata();
    assert_eq!(m.require_u32_per_layer("v.u16", 3).unwrap(), [1, 2, 3]);
    assert_eq!(m.require_u32_per_layer("a.u8", 2).unwrap(), [200, 200]);
    assert_eq!(
        m.require_bool_per_layer("v.bool", 2).unwrap(),
        [true, false]
    );
    assert_eq!(m.require_f32_per_layer("a.f32", 1).unwrap(), [1.5]);
    assert_eq!(m.get_i32_per_layer("absent", 9).unwrap(), None);
    assert_eq!(
        m.get_u32_per_layer("a.u8", usize::MAX).unwrap_err().code(),
        "TPC0132"
    );
}

#[test]
fn errors_name_key_expected_and_found() {
    let m = metadata();
    let message = |e: GgufError| (e.code(), e.to_string());
    let (code, text) = message(m.require_u32("llama.block_count").unwrap_err());
    assert_eq!(code, "TPC0130");
    assert!(
        text.contains("\"llama.block_count\"") && text.contains("integer"),
        "{text}"
    );
    let (code, text) = message(m.get_u32("a.f32").unwrap_err());
    assert_eq!(code, "TPC0131");
    assert!(
        text.contains("sample.gguf") && text.contains("found f32") && text.contains("at byte"),
        "{text}"
    );
    let (code, text) = message(m.get_u32("a.i32").unwrap_err());
    assert_eq!(code, "TPC0132");
    assert!(text.contains("found -5"), "{text}");
    let (code, text) = message(m.get_u32_per_layer("v.u16", 4).unwrap_err());
    assert_eq!(code, "TPC0133");
    assert!(
        text.contains("expected 4") && text.contains("found 3"),
        "{text}"
    );
    assert!(
        m.get_u32("v.u16")
            .unwrap_err()
            .to_string()
            .contains("array of 3 u16")
    );
    assert_eq!(
        m.get_bool("a.u8").unwrap_err().code(),
        "TPC0131",
        "integers are not booleans"
    );
    assert_eq!(
        m.get_f32("a.u8").unwrap_err().code(),
        "TPC0131",
        "integers are not floats"
    );
}

#[test]
fn metadata_made_by_hand_refuses_repetition() {
    let pairs = |keys: [&str; 2]| keys.map(|k| (k.to_owned(), 1u32.into()));
    assert_eq!(
        Metadata::from_pairs("m", pairs(["a", "b"])).unwrap().len(),
        2
    );
    assert_eq!(
        Metadata::from_pairs("m", pairs(["a", "a"]))
            .unwrap_err()
            .code(),
        "TPC0107"
    );
}
