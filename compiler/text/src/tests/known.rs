//! Texts with known ids: texts in `NAME.gguf.inp`, ids in `NAME.gguf.out`, one line per text.

use super::{open, vocabularies};
use crate::{Markers, SpecialText};

#[test]
fn texts_have_their_known_ids() {
    let (mut texts, mut wrong) = (0, Vec::new());
    for path in vocabularies() {
        let beside = |ending: &str| std::fs::read_to_string(path.with_extension(ending)).unwrap();
        let (inputs, outputs) = (beside("gguf.inp"), beside("gguf.out"));
        let inputs: Vec<&str> = inputs.split("\n__ggml_vocab_test__\n").collect();
        let mut expected: Vec<Vec<u32>> = Vec::new();
        for line in outputs.lines() {
            expected.push(
                line.split_whitespace()
                    .map(|n| n.parse().unwrap())
                    .collect(),
            );
        }
        let tokenizer = open(&path);
        for (i, text) in inputs.iter().enumerate() {
            let Some(expected) = expected.get(i) else {
                assert!(
                    text.is_empty() && i + 1 == inputs.len(),
                    "{}: {text:?}",
                    path.display()
                );
                continue;
            };
            texts += 1;
            let found = tokenizer.encode(text, SpecialText::Plain, Markers::Omit);
            if found != *expected {
                wrong.push(format!(
                    "{}: {text:?}\n  {found:?}\n  {expected:?}",
                    path.display()
                ));
            }
        }
    }
    assert!(texts >= 90, "{texts} texts");
    assert!(
        wrong.is_empty(),
        "{} of {texts}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
