//! Small vocabularies of every kind.

use crate::Tokenizer;
use tpc_gguf::{MetaValue, Metadata, StrList};

type Pairs = Vec<(String, MetaValue)>;

/// Returns a vocabulary of tokens: text, kind, score.
fn vocabulary(model: &str, tokens: &[(String, i32, f32)]) -> Pairs {
    let list: StrList = tokens.iter().map(|t| t.0.as_str()).collect();
    let kinds: Vec<i32> = tokens.iter().map(|t| t.1).collect();
    let scores: Vec<f32> = tokens.iter().map(|t| t.2).collect();
    let pairs: [(&str, MetaValue); 4] = [
        ("tokenizer.ggml.model", model.into()),
        ("tokenizer.ggml.tokens", list.into()),
        ("tokenizer.ggml.token_type", kinds.into()),
        ("tokenizer.ggml.scores", scores.into()),
    ];
    pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}

/// Returns the special tokens, the byte tokens if `bytes`, and words with decreasing scores.
fn tokens(special: &[(&str, i32)], bytes: bool, words: &[&str]) -> Vec<(String, i32, f32)> {
    let mut out: Vec<(String, i32, f32)> = special
        .iter()
        .map(|(s, kind)| ((*s).to_owned(), *kind, 0.0))
        .collect();
    if bytes {
        out.extend((0..=255u8).map(|b| (format!("<0x{b:02X}>"), 6, 0.0)));
    }
    for (i, word) in words.iter().enumerate() {
        out.push(((*word).to_owned(), 1, -1.0 - i as f32));
    }
    out
}

const MARKS: [(&str, i32); 3] = [("<unk>", 2), ("<s>", 3), ("</s>", 3)];

fn set(pairs: &mut Pairs, key: &str, value: impl Into<MetaValue>) {
    pairs.push((format!("tokenizer.ggml.{key}"), value.into()));
}

/// Returns a byte-level encoding with some merges.
fn byte_pairs(pre: &str) -> Pairs {
    let mut all = tokens(&MARKS, false, &[]);
    all.extend((0..=255u8).map(|b| (crate::byte_level::character(b).to_string(), 1, 0.0)));
    let merges = [
        "a a",
        "aa aa",
        "aaaa aaaa",
        "Ġ a",
        "Ġ Ġ",
        "l l",
        "h e",
        "1 2",
        "Ċ Ċ",
    ];
    all.extend(merges.map(|m| (m.replace(' ', ""), 1, 0.0)));
    let mut out = vocabulary("gpt2", &all);
    set(&mut out, "pre", pre);
    set(&mut out, "merges", merges.iter().collect::<StrList>());
    set(&mut out, "bos_token_id", 1u32);
    set(&mut out, "eos_token_id", 2u32);
    out
}

const WORDS: [&str; 14] = [
    "▁", "a", "e", "l", "o", "aa", "▁a", "aaaa", "aaaaaaaa", "ll", "He", "▁He", "1", "w",
];

/// Returns a named vocabulary of each kind.
pub(super) fn kinds() -> Vec<(String, Pairs)> {
    let sentence_piece = vocabulary("llama", &tokens(&MARKS, true, &WORDS));
    let mut unigram = vocabulary(
        "t5",
        &tokens(&[("<pad>", 3), ("</s>", 3), ("<unk>", 2)], false, &WORDS),
    );
    set(&mut unigram, "add_space_prefix", true);
    set(&mut unigram, "remove_extra_whitespaces", true);
    let mut bert = vocabulary(
        "bert",
        &tokens(
            &[("[PAD]", 3), ("[UNK]", 3), ("[CLS]", 3), ("[SEP]", 3)],
            false,
            &["▁a", "a", "▁hello", "▁w", "orld", "▁1", "▁!"],
        ),
    );
    for (key, id) in [
        ("unknown_token_id", 1u32),
        ("bos_token_id", 2),
        ("seperator_token_id", 3),
    ] {
        set(&mut bert, key, id);
    }
    let mut gemma = vocabulary(
        "gemma4",
        &tokens(
            &MARKS,
            true,
            &["▁", "a", "aa", "aaaa", "\n", "\n\n", "H", "e"],
        ),
    );
    set(
        &mut gemma,
        "merges",
        ["a a", "aa aa", "\n \n"].iter().collect::<StrList>(),
    );
    set(&mut gemma, "bos_token_id", 1u32);
    let mut escaped: Vec<(String, i32, f32)> =
        tokens(&[("<s>", 3)], false, &["aa", "aaaa", "He", "é"]);
    escaped.extend((0..=255u8).map(|b| (format!("\\x{b:02x}"), 1, 0.0)));
    let rwkv = vocabulary("rwkv", &escaped);
    let mut plamo = vocabulary("plamo2", &tokens(&MARKS, true, &WORDS[1..]));
    set(&mut plamo, "bos_token_id", 1u32);
    [
        ("byte pairs", byte_pairs("llama-bpe")),
        ("sentence piece", sentence_piece),
        ("unigram", unigram),
        ("bert", bert),
        ("gemma", gemma),
        ("rwkv", rwkv),
        ("plamo", plamo),
    ]
    .map(|(name, pairs)| (name.to_owned(), pairs))
    .to_vec()
}

/// Returns named vocabularies: each kind, then each byte-level pre-tokenizer.
pub(super) fn all() -> Vec<(String, Pairs)> {
    let mut out = kinds();
    let others = [
        "gemma4",
        "granite-embed-multi-311m",
        "sarvam-moe",
        "whitespace",
    ];
    let names = crate::pre_tokenizers().filter(|n| !others.contains(n));
    out.extend(names.map(|n| (n.to_owned(), byte_pairs(n))));
    let template = "{% for m in messages %}{{ bos_token + m.content }}{% endfor %}";
    for (_, pairs) in &mut out {
        pairs.push(("tokenizer.chat_template".to_owned(), template.into()));
    }
    out
}

pub(super) fn tokenizer(pairs: &Pairs) -> Tokenizer {
    Tokenizer::from_metadata(&Metadata::from_pairs("small", pairs.clone()).unwrap()).unwrap()
}
