//! Special tokens: the begin and end of a text, and other tokens with a meaning.
//!
//! A file's keys name few of them. tpc recognises the others by their texts, as in llama.cpp
//! (`llama_vocab::impl::load`): end-of-turn tokens, tokens that end a generation, fill-in-the-middle marks.

use tpc_diag::Diagnostic;
use tpc_gguf::Metadata;

use super::{TokenKind, Vocabulary};
use crate::codes;

/// The ids of special tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// The begin token; for BERT, the classifier token.
    pub bos: Option<u32>,
    /// The end token.
    pub eos: Option<u32>,
    /// The end-of-turn token.
    pub eot: Option<u32>,
    /// The end-of-message token, if the turn continues with another message.
    pub eom: Option<u32>,
    /// The token for text without a token.
    pub unknown: Option<u32>,
    /// The separator between texts.
    pub separator: Option<u32>,
    /// The padding token.
    pub padding: Option<u32>,
    /// The mask of a token to predict.
    pub mask: Option<u32>,
    /// Tokens that end a generation, in increasing order.
    pub ends: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Defaults {
    pub(crate) bos: Option<u32>,
    pub(crate) eos: Option<u32>,
    pub(crate) unknown: Option<u32>,
    pub(crate) separator: Option<u32>,
    pub(crate) padding: Option<u32>,
    pub(crate) mask: Option<u32>,
}

const END_OF_TURN: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
];
const END_OF_MESSAGE: &[&str] = &["<|eom_id|>"];

const ENDS: &[&str] = &[
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "</s>",
    "[EOS]",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "[e~[",
];

/// Fill-in-the-middle marks: key, older key, texts. The last three marks also end a generation.
const FILL: [(&str, Option<&str>, &[&str]); 6] = [
    (
        "fim_pre",
        Some("prefix"),
        &[
            "<|fim_prefix|>",
            "<fim-prefix>",
            "<fim_prefix>",
            "<｜fim▁begin｜>",
            "<PRE>",
            "▁<PRE>",
            "<|code_prefix|>",
            "<|prefix|>",
        ],
    ),
    (
        "fim_suf",
        Some("suffix"),
        &[
            "<|fim_suffix|>",
            "<fim-suffix>",
            "<fim_suffix>",
            "<｜fim▁hole｜>",
            "<SUF>",
            "▁<SUF>",
            "<|code_suffix|>",
            "<|suffix|>",
        ],
    ),
    (
        "fim_mid",
        Some("middle"),
        &[
            "<|fim_middle|>",
            "<fim-middle>",
            "<fim_middle>",
            "<｜fim▁end｜>",
            "<MID>",
            "▁<MID>",
            "<|code_middle|>",
            "<|middle|>",
        ],
    ),
    (
        "fim_pad",
        None,
        &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"],
    ),
    (
        "fim_rep",
        None,
        &[
            "<|fim_repo|>",
            "<|repo_name|>",
            "<fim-repo>",
            "<REPO>",
            "<reponame>",
        ],
    ),
    ("fim_sep", None, &["<|file_sep|>"]),
];

/// gpt-oss's tokens that separate answers from reasoning; they are shown.
const SHOWN: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

struct Reader<'a> {
    metadata: &'a Metadata,
    vocabulary: &'a mut Vocabulary,
    notes: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    /// Returns the token of `tokenizer.ggml.NAME_token_id`, or else the default if the vocabulary has it.
    fn id(&mut self, name: &str, default: Option<u32>) -> Result<Option<u32>, Diagnostic> {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let known = |id: u32| (id as usize) < self.vocabulary.len();
        let default = default.filter(|&id| known(id));
        // Converters write -1 if a token is missing.
        match self.metadata.get_i64(&key)? {
            None => Ok(default),
            Some(id) => match u32::try_from(id).ok().filter(|&id| known(id)) {
                Some(id) => Ok(Some(id)),
                None => {
                    let message = format!(
                        "{key} is {id}, but the vocabulary has {} tokens",
                        self.vocabulary.len()
                    );
                    let d = Diagnostic::new(&codes::SPECIAL_TOKEN, self.metadata.file(), message);
                    self.notes
                        .push(d.help("correct the key, or convert the model again"));
                    Ok(default)
                }
            },
        }
    }

    /// Finds the first of these texts that is a token, and marks the token as a control token.
    fn text(&mut self, texts: &[&str]) -> Option<u32> {
        let id = texts.iter().find_map(|t| self.vocabulary.find(t))?;
        self.vocabulary.set_kind(id, TokenKind::Control);
        Some(id)
    }

    /// Adds the other tokens that end a generation, and marks them as control tokens.
    fn ends(&mut self, mut ends: Vec<u32>) -> Vec<u32> {
        let of = |v: &Vocabulary, text: &str| v.find(text);
        for text in END_OF_TURN.iter().chain(END_OF_MESSAGE).chain(ENDS) {
            if let Some(id) = of(self.vocabulary, text) {
                self.vocabulary.set_kind(id, TokenKind::Control);
                ends.push(id);
            }
        }
        for text in SHOWN {
            if let Some(id) = of(self.vocabulary, text) {
                self.vocabulary.set_kind(id, TokenKind::UserDefined);
            }
        }
        // In gpt-oss and Solar, `<|end|>` ends a message, and the model continues.
        let has = |text: &str| of(self.vocabulary, text).is_some();
        let harmony = has("<|return|>") && (has("<|call|>") || has("<|calls|>"));
        let solar = has("<|flush|>") && (has("<|call|>") || has("<|calls|>"));
        if let Some(id) = of(self.vocabulary, "<|end|>").filter(|_| harmony || solar) {
            ends.retain(|&e| e != id);
            self.vocabulary.set_kind(id, TokenKind::UserDefined);
        }
        // In Gemma 4, `</s>` is an HTML tag, not a special token.
        let gemma = of(self.vocabulary, "<|tool_response>").is_some();
        if let Some(id) = of(self.vocabulary, "</s>").filter(|_| gemma) {
            ends.retain(|&e| e != id);
            self.vocabulary.set_kind(id, TokenKind::Normal);
        }
        ends.sort_unstable();
        ends.dedup();
        ends
    }
}

/// Finds a file's special tokens and corrects token kinds. Adds a note for each id out of range.
///
/// # Errors
/// Returns an error if an id is not an integer.
pub(crate) fn find(
    metadata: &Metadata,
    vocabulary: &mut Vocabulary,
    defaults: Defaults,
    notes: &mut Vec<Diagnostic>,
) -> Result<SpecialTokens, Diagnostic> {
    let mut reader = Reader {
        metadata,
        vocabulary,
        notes,
    };
    // BERT texts begin with the classifier token. Files from 2024 use the key `cls`.
    let classifier = reader.id("cls", defaults.bos)?;
    let mut out = SpecialTokens {
        bos: reader.id("bos", classifier)?,
        eos: reader.id("eos", defaults.eos)?,
        eot: reader.id("eot", None)?,
        eom: reader.id("eom", None)?,
        unknown: reader.id("unknown", defaults.unknown)?,
        // The format spells the key this way.
        separator: reader.id("seperator", defaults.separator)?,
        padding: reader.id("padding", defaults.padding)?,
        mask: reader.id("mask", defaults.mask)?,
        ends: Vec::new(),
    };
    if out.eot.is_none() {
        out.eot = reader.text(END_OF_TURN);
    }
    if out.eom.is_none() {
        out.eom = reader.text(END_OF_MESSAGE);
    }
    let mut ends = Vec::new();
    for (i, (name, older, texts)) in FILL.into_iter().enumerate() {
        let mut id = reader.id(name, None)?;
        if let Some(older) = older.filter(|_| id.is_none()) {
            id = reader.id(older, None)?;
        }
        let id = match id {
            Some(id) => Some(id),
            None => reader.text(texts),
        };
        if i >= 3 {
            ends.extend(id);
        }
    }
    out.ends = reader.ends(ends);
    // The end-of-text token always ends a generation. The end-of-turn token does unless removed above.
    out.ends.extend(out.eos);
    let eot = out
        .eot
        .filter(|&id| vocabulary.kind(id) != TokenKind::UserDefined);
    out.ends.extend(eot.into_iter().chain(out.eom));
    out.ends.sort_unstable();
    out.ends.dedup();
    Ok(out)
}
