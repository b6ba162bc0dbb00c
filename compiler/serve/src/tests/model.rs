use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tpc_engine::generate::Decoder;
use tpc_gguf::{MetaValue, Metadata, StrList};
use tpc_runtime::{Batch, Data, ExecError, Tensor};
use tpc_text::{ChatTemplate, Tokenizer};

use crate::{BitsPromise, Function, Model};

/// A model whose next token depends on the whole text.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    pub(super) texts: BTreeMap<u32, Vec<u32>>,
    pub(super) logits: Option<Tensor>,
    /// Number of tokens of each batch.
    pub(super) batches: Vec<usize>,
    /// Time of a batch.
    pub(super) time: Duration,
    /// The batch that hangs, and its time.
    pub(super) hangs: Option<(usize, Duration)>,
    /// The first batch that fails, and the number of failing batches.
    pub(super) fails: Option<(usize, usize)>,
}

pub(super) const VOCAB: usize = 286;

/// Returns the likeliest token after a text: a letter, and an end token after some texts.
pub(super) fn next(text: &[u32]) -> u32 {
    let mixed = text.iter().fold(17_u64, |h, &t| {
        (h ^ u64::from(t)).wrapping_mul(0x0100_0000_01b3)
    });
    match (mixed >> 20) as u32 % 27 {
        26 => 2,
        letter => 259 + letter,
    }
}

impl Decoder for Oracle {
    fn step(&mut self, batch: &Batch) -> Result<&Tensor, ExecError> {
        std::thread::sleep(self.time);
        self.batches.push(batch.tokens.len());
        let n = self.batches.len();
        if let Some((_, time)) = self.hangs.filter(|(batch, _)| *batch == n) {
            std::thread::sleep(time);
        }
        if self
            .fails
            .is_some_and(|(from, count)| (from..from + count).contains(&n))
        {
            return Err(ExecError::Malformed {
                what: "the device is lost".to_owned(),
            });
        }
        let mut rows = Vec::new();
        for i in 0..batch.tokens.len() {
            let text = self.texts.entry(batch.seq_ids[i]).or_default();
            assert_eq!(
                batch.positions[i] as usize,
                text.len(),
                "positions rise by one"
            );
            text.push(batch.tokens[i]);
            if batch.output_rows.contains(&(i as u32)) {
                let mut row = vec![0.0; VOCAB];
                row[next(text) as usize] = 9.0;
                row[next(&text[1..]) as usize] += 4.0;
                rows.extend(row);
            }
        }
        let dims = [VOCAB, rows.len() / VOCAB, 1, 1];
        Ok(self.logits.insert(Tensor::new(dims, Data::F32(rows))?))
    }

    fn draft_step(&mut self, _: &[u32]) -> Result<&Tensor, ExecError> {
        Err(ExecError::NothingToDraft)
    }

    fn n_drafts(&self) -> usize {
        0
    }

    fn remove_sequence(&mut self, seq: u32) {
        self.texts.remove(&seq);
    }

    fn next_position(&self, seq: u32) -> u64 {
        self.texts.get(&seq).map_or(0, |t| t.len() as u64)
    }

    fn can_truncate(&self, _: u32, _: u64) -> bool {
        true
    }

    fn truncate(&mut self, seq: u32, pos: u64) -> Result<(), ExecError> {
        if let Some(text) = self.texts.get_mut(&seq) {
            text.truncate(pos as usize);
        }
        Ok(())
    }

    fn checkpoint(&mut self, _: u32) -> Result<(), ExecError> {
        Ok(())
    }

    fn shift(&mut self, _: u32, _: u64, _: u64) -> Result<(), ExecError> {
        Err(ExecError::NothingToDraft)
    }
}

/// Returns a SentencePiece vocabulary: markers, bytes, letters.
fn metadata() -> Metadata {
    let markers = [("<unk>", 2), ("<s>", 3), ("</s>", 3)].map(|(t, kind)| (t.to_owned(), kind));
    let bytes = (0..=255_u8).map(|b| (format!("<0x{b:02X}>"), 6));
    let letters = ('a'..='z').map(|c| (c.to_string(), 1));
    let all = markers.into_iter().chain(bytes).chain(letters);
    let (texts, kinds): (Vec<String>, Vec<i32>) = all.chain([("▁".to_owned(), 1)]).unzip();
    let scores: Vec<f32> = (0..texts.len()).map(|i| -(i as f32)).collect();
    let pairs: [(&str, MetaValue); 6] = [
        ("model", "llama".into()),
        ("tokens", texts.iter().collect::<StrList>().into()),
        ("token_type", kinds.into()),
        ("scores", scores.into()),
        ("bos_token_id", 1_u32.into()),
        ("eos_token_id", 2_u32.into()),
    ];
    let pairs = pairs.map(|(key, value)| (format!("tokenizer.ggml.{key}"), value));
    Metadata::from_pairs("words.gguf", pairs).expect("valid metadata")
}

/// Returns the description of the model for a server with `slots` slots of `n_ctx` tokens.
pub(super) fn model(slots: usize, n_ctx: usize) -> Model {
    let metadata = metadata();
    Model {
        name: "oracle".to_owned(),
        tokenizer: Arc::new(Tokenizer::from_metadata(&metadata).expect("a vocabulary")),
        template: ChatTemplate::from_metadata(&metadata, None),
        template_source: String::new(),
        function: Function::Text,
        n_ctx,
        n_ctx_train: None,
        n_vocab: VOCAB,
        recurrent: false,
        slots,
        bits: BitsPromise {
            same_on_one_device: true,
            same_under_load: true,
        },
        devices: "cpu".to_owned(),
        bytes: 0,
    }
}
