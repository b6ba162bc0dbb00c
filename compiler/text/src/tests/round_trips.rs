//! Text to ids and back.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::{open, small, vocabularies};
use crate::{Detokenizer, Markers, Show, SpecialText, Start, Tokenizer};

/// Tokenizers that reproduce every text exactly.
static EXACT: LazyLock<Vec<(String, Tokenizer)>> = LazyLock::new(|| {
    let exact = [
        "byte pairs",
        "sentence piece",
        "gemma",
        "rwkv",
        "plamo",
        "falcon",
        "bloom",
        "kimi-k2",
        "superbpe",
    ];
    let mut out = Vec::new();
    for (name, pairs) in small::all() {
        if exact.contains(&name.as_str()) {
            out.push((name, small::tokenizer(&pairs)));
        }
    }
    out.extend(
        vocabularies()
            .iter()
            .map(|p| (p.display().to_string(), open(p))),
    );
    out
});

/// True if the vocabulary has all bytes of a text. Published vocabularies may lack some.
fn has_bytes(tokenizer: &Tokenizer, text: &str) -> bool {
    let written = |b: u8| {
        tokenizer
            .find(&crate::byte_level::character(b).to_string())
            .is_some()
    };
    let byte_level = tokenizer.find("Ġ").is_some();
    !byte_level || text.bytes().all(written)
}

/// Generates characters of all planes, and characters that tokenizers treat specially.
fn text() -> impl Strategy<Value = String> {
    let usual = prop::sample::select(vec![
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "a",
        "Hello",
        "'s",
        "'LL",
        "1",
        "12345",
        "é",
        "e\u{301}",
        "中文",
        "🦙",
        "👩‍👩‍👧",
        "ᄀ",
        "\u{0}",
        "\u{a0}",
        "\u{3000}",
        "!?",
        "<",
        "<|im_end|>",
        "</s>",
        "ß",
        "İ",
        "ﬁ",
        "ا",
        "हि",
        "\u{feff}x",
        "\u{fffd}",
    ]);
    let any = any::<char>().prop_map(String::from);
    let part = prop_oneof![3 => usual.prop_map(str::to_owned), 1 => any];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn text_comes_back(text in text()) {
        // SentencePiece decodes `▁` as a space. PLaMo drops a leading byte-order mark.
        prop_assume!(!text.contains('▁') && !text.starts_with('\u{feff}'));
        for (name, tokenizer) in EXACT.iter().filter(|(_, t)| has_bytes(t, &text)) {
            let ids = tokenizer.encode(&text, SpecialText::Plain, Markers::Omit);
            let back = tokenizer.decode(&ids, Start::Text, Show::Special).unwrap();
            prop_assert_eq!(&back, &text, "{} {:?}", name, ids);
        }
    }

    #[test]
    fn a_stream_is_the_whole(ids in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        for (name, tokenizer) in EXACT.iter() {
            let ids: Vec<u32> = ids.iter().map(|i| u32::try_from(i.index(tokenizer.len())).unwrap()).collect();
            for show in [Show::Text, Show::Special] {
                let (mut bytes, mut streamed) = (Vec::new(), String::new());
                let mut detokenizer = Detokenizer::new(tokenizer, Start::Continuation, show);
                for &id in &ids {
                    if show == Show::Special || !tokenizer.kind(id).unwrap().is_special() {
                        tokenizer.piece(id, &mut bytes).unwrap();
                    }
                    detokenizer.push(id, &mut streamed).unwrap();
                    // The streamed text is a prefix: characters are not broken.
                    let whole = String::from_utf8_lossy(&bytes);
                    prop_assert!(whole.starts_with(&streamed), "{}: {:?} of {:?}", name, streamed, whole);
                    let held = whole.chars().count() - streamed.chars().count();
                    prop_assert!(held <= 1, "{} characters are held back", held);
                }
                detokenizer.finish(&mut streamed);
                prop_assert_eq!(&streamed, &String::from_utf8_lossy(&bytes), "{}", name);
            }
        }
    }
}

#[test]
fn a_character_comes_when_it_is_whole() {
    let tokenizer = &EXACT.iter().find(|(n, _)| n == "byte pairs").unwrap().1;
    let ids = tokenizer.encode("a🦙b", SpecialText::Plain, Markers::Omit);
    let mut detokenizer = Detokenizer::new(tokenizer, Start::Text, Show::Text);
    let mut steps = Vec::new();
    for id in ids {
        let mut out = String::new();
        detokenizer.push(id, &mut out).unwrap();
        steps.push(out);
    }
    assert_eq!(steps, ["a", "", "", "", "🦙", "b"]);
}

#[test]
fn an_answer_keeps_the_space_before_its_first_word() {
    let tokenizer = &EXACT.iter().find(|(n, _)| n == "sentence piece").unwrap().1;
    let ids = tokenizer.encode("a He", SpecialText::Plain, Markers::Add);
    assert_eq!(
        tokenizer.decode(&ids, Start::Text, Show::Text).unwrap(),
        "a He"
    );
    assert_eq!(
        tokenizer
            .decode(&ids, Start::Continuation, Show::Text)
            .unwrap(),
        " a He"
    );
    assert_eq!(
        tokenizer.decode(&ids, Start::Text, Show::Special).unwrap(),
        "<s>a He"
    );
}
