//! Hostile files and texts cause diagnostics, never long run times.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{open, small, vocabularies};
use crate::{
    ChatTemplate, Conversation, Detokenizer, Ending, Markers, Message, Show, SpecialText, Start,
    Tokenizer,
};
use tpc_gguf::{GgufFile, MetaArray, MetaValue, Metadata, StrList};

/// The limit of processor time per mebibyte of text. A release build takes less than a second.
const MOMENT: Duration = Duration::from_secs(5);

fn spent(since: Instant) -> Duration {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let first = schedule.and_then(|s| s.split_whitespace().next()?.parse().ok());
    first.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

const REPEATED: [&str; 14] = [
    "a", " ", "\n", "A", "1", "中", "!", "é", "\u{301}", "<", "a b", " \n", "<s>", "'",
];

#[track_caller]
fn in_a_moment(name: &str, text: &str, what: impl FnOnce() -> usize) {
    let start = Instant::now();
    let before = spent(start);
    let parts = what();
    let took = spent(start) - before;
    assert!(
        took < MOMENT,
        "{name}: {text:?} took {took:?} for {parts} parts"
    );
}

#[test]
fn a_mebibyte_of_anything_takes_a_moment() {
    for text in REPEATED {
        let long = text.repeat((1 << 20) / text.len());
        for (name, pairs) in small::kinds() {
            let tokenizer = small::tokenizer(&pairs);
            in_a_moment(&name, text, || {
                tokenizer
                    .encode(&long, SpecialText::Read, Markers::Add)
                    .len()
            });
        }
    }
}

#[test]
fn a_mebibyte_of_a_letter_takes_a_moment_with_published_vocabularies() {
    let long = "a".repeat(1 << 20);
    for path in vocabularies() {
        let tokenizer = open(&path);
        in_a_moment(&path.display().to_string(), "a", || {
            tokenizer
                .encode(&long, SpecialText::Read, Markers::Add)
                .len()
        });
    }
}

#[test]
fn every_pre_tokenizer_cuts_a_mebibyte_in_a_moment() {
    let mut seen = Vec::new();
    for name in crate::pre_tokenizers() {
        let steps = crate::pre::find(name).unwrap().steps;
        if seen.iter().any(|s| std::ptr::eq(*s, steps)) {
            continue;
        }
        seen.push(steps);
        let splitter = crate::pre::Splitter::new(steps);
        for text in REPEATED {
            let long = text.repeat((1 << 20) / text.len());
            in_a_moment(name, text, || splitter.words(&long).len());
        }
    }
}

fn change(metadata: &mut Vec<(String, MetaValue)>, key: usize, how: u8, n: i64) {
    if metadata.is_empty() {
        return;
    }
    let at = key % metadata.len();
    let list = |value: &MetaValue| match value {
        MetaValue::Array(MetaArray::Str(l)) => {
            Some(l.iter().map(str::to_owned).collect::<Vec<_>>())
        }
        _ => None,
    };
    let value = &mut metadata[at].1;
    match (how, list(value)) {
        (0, _) => drop(metadata.remove(at)),
        (1, _) => *value = MetaValue::from(u32::try_from(n.unsigned_abs()).unwrap_or(u32::MAX)),
        (2, _) => *value = MetaValue::from(n),
        (3, _) => *value = MetaValue::from("llama-bpe"),
        (4, _) => *value = MetaValue::from(vec![0u8, 1, 2, 3, 255, 7, 9, 11, 13, 250, 99, 0]),
        (5, _) => *value = MetaValue::from(vec![f32::NAN, 1.0]),
        (6, _) => *value = MetaValue::from(StrList::new()),
        (7, _) => *value = MetaValue::from(true),
        (8, Some(mut list)) if !list.is_empty() => {
            let i = usize::try_from(n.unsigned_abs()).unwrap_or(0) % list.len();
            list[i] = [
                "", " ", "  ", "a", "<0x", "<0xZZ>", "▁", "é é", "\u{0}", "a a a", "{{ x", "<s>",
            ][i % 12]
                .to_owned();
            *value = MetaValue::from(list.iter().collect::<StrList>());
        }
        (9, Some(mut list)) => {
            list.truncate(usize::try_from(n.unsigned_abs()).unwrap_or(0) % (list.len() + 1));
            *value = MetaValue::from(list.iter().collect::<StrList>());
        }
        _ => {
            *value = MetaValue::from(
                [
                    "bert", "t5", "rwkv", "plamo2", "gpt2", "llama", "gemma4", "x",
                ][at % 8],
            );
        }
    }
}

fn exercise(metadata: &Metadata) {
    let messages = [
        Message::new("system", "x"),
        Message::new("user", "Hello <s> é\u{0}🦙"),
    ];
    let tokenizer = match Tokenizer::from_metadata(metadata) {
        Ok(t) => t,
        Err(d) => {
            assert!(!d.to_string().is_empty());
            return;
        }
    };
    for text in ["", " ", "Hello  world\n\n <s> é中🦙 123 \u{0} ab</s>aaaa"] {
        for special in [SpecialText::Read, SpecialText::Plain] {
            let ids = tokenizer.encode(text, special, Markers::Add);
            assert!(
                ids.iter().all(|&id| (id as usize) < tokenizer.len()),
                "{ids:?}"
            );
            for show in [Show::Text, Show::Special] {
                tokenizer.decode(&ids, Start::Text, show).unwrap();
            }
        }
    }
    for id in 0..u32::try_from(tokenizer.len()).unwrap() {
        tokenizer
            .decode(&[id], Start::Continuation, Show::Special)
            .unwrap();
    }
    assert!(
        Detokenizer::new(&tokenizer, Start::Text, Show::Text)
            .push(u32::MAX, &mut String::new())
            .is_err()
    );
    if let Ok(template) = ChatTemplate::from_metadata(metadata, None) {
        let conversation = Conversation {
            messages: &messages,
            ending: Ending::Answer,
            now: None,
            switches: &[],
        };
        if let Ok(prompt) = template.render(&tokenizer, &conversation) {
            tokenizer.encode_prompt(&prompt.text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_metadata_give_diagnostics_or_tokenizers(
        which in 0usize..8,
        changes in prop::collection::vec((0usize..64, 0u8..12, -3i64..40), 1..4),
    ) {
        let (_, mut pairs) = small::all().swap_remove(which);
        for (key, how, n) in changes {
            change(&mut pairs, key, how, n);
        }
        if let Ok(metadata) = Metadata::from_pairs("changed", pairs) {
            exercise(&metadata);
        }
    }
}

#[test]
fn small_vocabularies_work_as_they_are() {
    for (_, pairs) in small::all() {
        let metadata = Metadata::from_pairs("small", pairs).unwrap();
        Tokenizer::from_metadata(&metadata).unwrap();
        exercise(&metadata);
    }
}

#[test]
fn a_file_without_a_vocabulary_is_refused_in_words() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = GgufFile::open(root.join("tests/data/headers/qwen3-0.6b-q8_0.header.gguf")).unwrap();
    assert_eq!(Tokenizer::from_gguf(&file).unwrap_err().code.id, "TPC0560");
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let error = |key: &str, value: &str| {
        let mut pairs = small::all().swap_remove(0).1;
        pairs.retain(|(k, _)| k != key);
        pairs.push((key.to_owned(), value.into()));
        Tokenizer::from_metadata(&Metadata::from_pairs("file", pairs).unwrap()).unwrap_err()
    };
    let d = error("tokenizer.ggml.pre", "qwen-2");
    assert_eq!(d.code.id, "TPC0562");
    assert!(
        d.help
            .unwrap()
            .to_string()
            .starts_with("did you mean qwen2? known are a.x-4.0, ")
    );
    let d = error("tokenizer.ggml.model", "gpt-2");
    assert_eq!(d.code.id, "TPC0561");
    assert!(
        d.help
            .unwrap()
            .to_string()
            .starts_with("did you mean gpt2? ")
    );
}
