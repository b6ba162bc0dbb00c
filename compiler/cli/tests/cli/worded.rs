//! Small models with a vocabulary.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use tpc_gguf::{GgufFile, GgufWriter, MetaValue, StrList};

use super::support::Scratch;

/// Markers, bytes, and the letters: a SentencePiece vocabulary of 286 tokens.
pub(crate) const VOCAB: usize = 286;

fn tokens() -> (Vec<String>, Vec<i32>) {
    let markers = [("<unk>", 2), ("<s>", 3), ("</s>", 3)].map(|(t, kind)| (t.to_owned(), kind));
    let bytes = (0..=255_u8).map(|b| (format!("<0x{b:02X}>"), 6));
    let letters = ('a'..='z').map(|c| (c.to_string(), 1));
    let all = markers.into_iter().chain(bytes).chain(letters);
    all.chain([("▁".to_owned(), 1)]).unzip()
}

/// Writes a synthetic model with a vocabulary. `spec` must have `vocab=286`.
pub(crate) fn worded(scratch: &Scratch, name: &str, spec: &str) -> PathBuf {
    let plain = GgufFile::open(scratch.model(spec)).unwrap();
    let mut out = GgufWriter::new(name);
    for entry in plain.header().metadata().entries() {
        if !entry.key.starts_with("tokenizer.ggml.") {
            out.meta(&entry.key, entry.value.clone());
        }
    }
    let (texts, kinds) = tokens();
    assert_eq!(texts.len(), VOCAB);
    let scores: Vec<f32> = (0..texts.len()).map(|i| -(i as f32)).collect();
    let pairs: [(&str, MetaValue); 6] = [
        ("model", "llama".into()),
        ("tokens", texts.iter().collect::<StrList>().into()),
        ("token_type", kinds.into()),
        ("scores", scores.into()),
        ("bos_token_id", 1_u32.into()),
        ("eos_token_id", 2_u32.into()),
    ];
    for (key, value) in pairs {
        out.meta(&format!("tokenizer.ggml.{key}"), value);
    }
    for tensor in plain.header().tensors() {
        out.tensor(&tensor.name, tensor.dtype, &tensor.ne);
    }
    let path = scratch.path(name);
    let file = BufWriter::new(File::create(&path).unwrap());
    let tensors = plain.header().tensors();
    out.write(file, |i, _, out| {
        out.write_all(plain.tensor_data(&tensors[i]).unwrap())
    })
    .unwrap();
    path
}
