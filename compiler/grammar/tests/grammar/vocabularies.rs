//! Vocabularies: two small vocabularies, one of the repository, and one of a real model if `TPC_REAL_MODEL` names it.

use std::path::Path;

use tpc_gguf::{GgufFile, MetaValue, Metadata, StrList};
use tpc_grammar::Vocabulary;
use tpc_text::Tokenizer;

/// A tokenizer with its tokens for grammars.
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) vocabulary: Vocabulary,
}

impl Model {
    fn new(name: &str, tokenizer: Tokenizer) -> Model {
        Model {
            name: name.to_owned(),
            vocabulary: Vocabulary::new(&tokenizer).unwrap(),
            tokenizer,
        }
    }

    /// Returns a model without a file: byte tokens and a few words, in the style of SentencePiece.
    pub(crate) fn small() -> Model {
        let words = [
            "▁", "▁a", "true", "\":", "\",\"", "{\"", "}}", "12", "é", "日本", "▁\"", "],",
        ];
        Model::new("small", small("llama", &words, true))
    }

    /// Returns a model without a file: byte-level pairs.
    pub(crate) fn byte_level() -> Model {
        let words = ["Ġ", "\":", "\",\"", "{\"", "}}", "true", "Ġtrue", "12"];
        Model::new("byte level", small("gpt2", &words, false))
    }

    /// Opens a model file; `None` if it is missing.
    fn open(path: &Path) -> Option<Model> {
        if !path.exists() {
            return None;
        }
        let file = GgufFile::open(path).unwrap();
        let tokenizer = Tokenizer::from_gguf(&file).unwrap();
        Some(Model::new(&path.display().to_string(), tokenizer))
    }

    /// Returns the vocabularies of the repository's files, and of a real model if `TPC_REAL_MODEL` names it.
    pub(crate) fn files() -> Vec<Model> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/vocab");
        let llama = folder.join("ggml-vocab-llama-spm.gguf");
        let real = std::env::var_os("TPC_REAL_MODEL");
        let real = real.and_then(|path| Model::open(Path::new(&path)));
        let llama = Model::open(&llama).unwrap();
        [Some(llama), real].into_iter().flatten().collect()
    }

    /// Returns all vocabularies.
    pub(crate) fn all() -> Vec<Model> {
        let mut out = vec![Model::small(), Model::byte_level()];
        out.extend(Model::files());
        out
    }
}

/// Returns a tokenizer of the special tokens, all bytes, and some words.
fn small(model: &str, words: &[&str], byte_tokens: bool) -> Tokenizer {
    let mut tokens: Vec<(String, i32)> = [("<unk>", 2), ("<s>", 3), ("</s>", 3), ("<|im_end|>", 3)]
        .map(|(text, kind)| (text.to_owned(), kind))
        .to_vec();
    match byte_tokens {
        true => tokens.extend((0..=255u8).map(|b| (format!("<0x{b:02X}>"), 6))),
        false => tokens.extend(byte_level_characters().map(|c| (c.to_string(), 1))),
    }
    let missing: Vec<&&str> = words
        .iter()
        .filter(|w| tokens.iter().all(|t| t.0 != **w))
        .collect();
    tokens.extend(missing.into_iter().map(|w| ((*w).to_owned(), 1)));
    let list: StrList = tokens.iter().map(|t| t.0.as_str()).collect();
    let kinds: Vec<i32> = tokens.iter().map(|t| t.1).collect();
    let pairs: Vec<(&str, MetaValue)> = vec![
        ("model", model.into()),
        ("pre", "llama-bpe".into()),
        ("merges", ["a a"].iter().collect::<StrList>().into()),
        ("tokens", list.into()),
        ("token_type", kinds.into()),
        ("eos_token_id", 2u32.into()),
    ];
    let pairs = pairs
        .into_iter()
        .map(|(k, v)| (format!("tokenizer.ggml.{k}"), v));
    Tokenizer::from_metadata(&Metadata::from_pairs("small", pairs).unwrap()).unwrap()
}

/// Returns the characters of GPT-2's byte-level vocabularies.
fn byte_level_characters() -> impl Iterator<Item = char> {
    let mut others = 0x100u32..;
    (0..=255u8).map(move |byte| match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        _ => char::from_u32(others.next().unwrap()).unwrap(),
    })
}
