//! A model file's tokenizer.

use tpc_diag::{Diagnostic, suggest};
use tpc_gguf::{GgufFile, Metadata};

use super::codes;
use super::models::{
    BytePairs, Cleaning, Model, Plamo2, Prefix, Rwkv, SentencePiece, Spacing, Unigram, WordPiece,
};
use super::partition::{Fragment, Partition, SpecialText, Strips};
use super::pre::{self, Bytes, Pre};
use super::vocabulary::{self, Defaults, SpecialTokens, TokenKind, Vocabulary, unusable};

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";

const MODELS: [&str; 8] = [
    "bert",
    "gemma4",
    "gpt2",
    "llama",
    "plamo2",
    "rwkv",
    "t5",
    "whitespace",
];

/// The maximum part to tokenize in one call, in bytes. Offsets stay below 2^32 even if each space becomes three bytes.
const LONGEST: usize = 1 << 30;

/// The choice to add or omit the begin and end tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markers {
    /// Adds the tokens that the model file requests.
    Add,
    /// Omits both tokens: the text is part of a longer one.
    Omit,
}

/// Converts text to token ids, and ids to bytes.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    special: SpecialTokens,
    partition: Partition,
    model: Model,
    /// The tokens before and after a text.
    begin: Option<u32>,
    end: Option<u32>,
    notes: Vec<Diagnostic>,
}

/// Defaults for missing keys.
struct Habits {
    defaults: Defaults,
    add_bos: bool,
    add_eos: bool,
}

impl Tokenizer {
    /// Creates a model's tokenizer.
    ///
    /// # Errors
    /// Returns TPC0560 to TPC0563 if the tokenizer is missing or unknown, or if its lists contradict each other.
    pub fn from_gguf(file: &GgufFile) -> Result<Tokenizer, Diagnostic> {
        Tokenizer::from_metadata(file.header().metadata())
    }

    /// Creates a tokenizer from metadata.
    ///
    /// # Errors
    /// Returns the errors of [`Tokenizer::from_gguf`].
    pub fn from_metadata(metadata: &Metadata) -> Result<Tokenizer, Diagnostic> {
        let mut notes = Vec::new();
        let name = metadata.get_str(MODEL)?;
        let name = name.filter(|n| !["no_vocab", "none"].contains(n));
        let Some(name) = name else {
            let message = "the file lacks a vocabulary, so tpc cannot convert text to tokens";
            let d = Diagnostic::new(&codes::NO_TOKENIZER, metadata.file(), message);
            return Err(d.help("use a file with a vocabulary, or give token ids"));
        };
        let Some(&name) = MODELS.iter().find(|&&m| m == name) else {
            return Err(unknown_model(metadata, name));
        };
        let mut vocabulary = Vocabulary::read(metadata)?;
        let pre = pre_tokenizer(metadata, name, &mut notes)?;
        let habits = habits(name, pre);
        let special = vocabulary::find(metadata, &mut vocabulary, habits.defaults, &mut notes)?;
        let model = build(metadata, &vocabulary, &special, name, pre)?;
        let (begin, end) = ends(metadata, &habits, &special, name, pre)?;
        let text = |key: &str| metadata.get_str(key).map(Option::unwrap_or_default);
        let strips = Strips::of_names(
            &text("general.name")?.to_ascii_lowercase(),
            text(PRE)?,
            text("general.architecture")?,
        );
        Ok(Tokenizer {
            partition: Partition::new(&vocabulary, strips),
            vocabulary,
            special,
            model,
            begin,
            end,
            notes,
        })
    }

    /// Returns notes on guesses and on unused keys.
    pub fn notes(&self) -> &[Diagnostic] {
        &self.notes
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// True if the vocabulary is empty. A file's vocabulary never is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the special tokens.
    pub fn special(&self) -> &SpecialTokens {
        &self.special
    }

    /// Returns the token before a text, if the file requests one.
    pub const fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// True if the token ends a generation.
    pub fn ends_generation(&self, id: u32) -> bool {
        self.special.ends.binary_search(&id).is_ok()
    }

    /// Returns a token's text as in the file, where other characters may stand for bytes and spaces.
    pub fn token_text(&self, id: u32) -> Option<&str> {
        self.known(id).then(|| self.vocabulary.text(id))
    }

    /// Returns the kind of a token.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.known(id).then(|| self.vocabulary.kind(id))
    }

    /// Returns the token with this text.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.vocabulary.find(text)
    }

    fn known(&self, id: u32) -> bool {
        (id as usize) < self.len()
    }

    /// Tokenizes a text.
    pub fn encode(&self, text: &str, special: SpecialText, markers: Markers) -> Vec<u32> {
        let mut out = Vec::new();
        let marked = |marker: Option<u32>| marker.filter(|_| markers == Markers::Add);
        out.extend(marked(self.begin));
        let mut prefixed = true;
        for fragment in self.partition.cut(&self.vocabulary, text, special) {
            match fragment {
                Fragment::Token(id) => {
                    out.push(id);
                    prefixed = true;
                }
                Fragment::Text(range) => {
                    let mut rest = &text[range];
                    while !rest.is_empty() {
                        let (part, after) = rest.split_at(rest.floor_char_boundary(LONGEST));
                        self.model
                            .encode(&self.vocabulary, part, prefixed, &mut out);
                        (rest, prefixed) = (after, false);
                    }
                }
            }
        }
        out.extend(marked(self.end));
        out
    }

    /// Tokenizes a chat prompt, with special tokens. Adds the begin token unless the prompt starts with its text.
    pub fn encode_prompt(&self, prompt: &str) -> Vec<u32> {
        let written = self
            .begin
            .is_some_and(|id| prompt.starts_with(self.vocabulary.text(id)));
        let mut out = Vec::new();
        out.extend(self.begin.filter(|_| !written));
        out.extend(self.encode(prompt, SpecialText::Read, Markers::Omit));
        out
    }

    /// Appends a token's bytes, which may be an incomplete character.
    ///
    /// # Errors
    /// Returns an error if the id is not in the vocabulary.
    pub fn piece(&self, id: u32, out: &mut Vec<u8>) -> Result<(), Diagnostic> {
        if !self.known(id) {
            let message = format!(
                "token {id} is not among the vocabulary's {} tokens",
                self.len()
            );
            return Err(Diagnostic::new(&codes::UNKNOWN_ID, id.to_string(), message)
                .help("use ids from this file's tokenizer"));
        }
        self.model.piece(&self.vocabulary, id, out);
        Ok(())
    }

    pub(crate) fn adds_space(&self) -> bool {
        self.model.adds_space()
    }
}

fn unknown_model(metadata: &Metadata, name: &str) -> Diagnostic {
    let near =
        suggest::nearest(name, MODELS).map_or_else(String::new, |n| format!("did you mean {n}? "));
    let shown = suggest::shorten(name);
    let message = format!("{MODEL} is {shown:?}, which is not supported");
    Diagnostic::new(&codes::UNKNOWN_TOKENIZER, metadata.file(), message)
        .help(format!("{near}supported are {}", MODELS.join(", ")))
}

/// Returns a byte-pair encoding's pre-tokenizer, or `None` for other algorithms.
fn pre_tokenizer(
    metadata: &Metadata,
    model: &str,
    notes: &mut Vec<Diagnostic>,
) -> Result<Option<&'static Pre>, Diagnostic> {
    let name = match model {
        "gpt2" | "whitespace" => metadata.get_str(PRE)?.unwrap_or_default(),
        "gemma4" => "gemma4",
        _ => return Ok(None),
    };
    if name.is_empty() {
        let message =
            format!("{PRE} is missing: tpc uses the default rules, and answers may be worse");
        let d = Diagnostic::new(&codes::NO_PRE_TOKENIZER, metadata.file(), message);
        notes.push(d.help("convert the model again with a current llama.cpp"));
        return Ok(pre::find("default"));
    }
    match pre::find(name) {
        Some(pre) => Ok(Some(pre)),
        None => {
            let near = suggest::nearest(name, pre::names());
            let near = near.map_or_else(String::new, |n| format!("did you mean {n}? "));
            let known: Vec<&str> = pre::names().collect();
            let message = format!("{PRE} is {:?}, which is not known", suggest::shorten(name));
            let d = Diagnostic::new(&codes::UNKNOWN_PRE_TOKENIZER, metadata.file(), message);
            Err(d.help(format!("{near}known are {}", known.join(", "))))
        }
    }
}

fn habits(model: &str, pre: Option<&Pre>) -> Habits {
    let none = Defaults::default();
    let (defaults, add_bos, add_eos) = match model {
        "llama" => {
            let defaults = Defaults {
                bos: Some(1),
                eos: Some(2),
                unknown: Some(0),
                ..none
            };
            (defaults, true, false)
        }
        "bert" => {
            let defaults = Defaults {
                bos: Some(101),
                unknown: Some(100),
                separator: Some(102),
                padding: Some(0),
                mask: Some(103),
                ..none
            };
            (defaults, true, true)
        }
        "t5" => {
            let defaults = Defaults {
                eos: Some(1),
                unknown: Some(2),
                padding: Some(0),
                ..none
            };
            (defaults, false, true)
        }
        "plamo2" => {
            let defaults = Defaults {
                bos: Some(1),
                eos: Some(2),
                unknown: Some(0),
                padding: Some(3),
                ..none
            };
            (defaults, false, false)
        }
        "gpt2" | "whitespace" => {
            let defaults = Defaults {
                bos: Some(11).filter(|_| pre.is_none_or(|p| !p.no_default_bos)),
                eos: Some(11),
                ..none
            };
            (defaults, pre.is_some_and(|p| p.add_bos), false)
        }
        _ => (none, false, false),
    };
    Habits {
        defaults,
        add_bos,
        add_eos,
    }
}

fn build(
    metadata: &Metadata,
    vocabulary: &Vocabulary,
    special: &SpecialTokens,
    name: &str,
    pre: Option<&Pre>,
) -> Result<Model, Diagnostic> {
    let flag = |key: &str, default: bool| metadata.get_bool(key).map(|f| f.unwrap_or(default));
    let prefix = |default| flag("tokenizer.ggml.add_space_prefix", default);
    if let Some(pre) = pre {
        return BytePairs::read(metadata, vocabulary, pre).map(Model::BytePairs);
    }
    Ok(match name {
        "llama" => {
            let prefix = match prefix(true)? {
                true => Prefix::Space,
                false => Prefix::Nothing,
            };
            Model::SentencePiece(SentencePiece::new(vocabulary, prefix, special.unknown))
        }
        "t5" => {
            let spacing = Spacing {
                prefix: prefix(false)?,
                merge: flag("tokenizer.ggml.remove_extra_whitespaces", false)?,
            };
            let unknown = special.unknown.ok_or_else(|| {
                unusable(
                    metadata,
                    "tokenizer.ggml.unknown_token_id and token 2 are missing",
                )
            })?;
            Model::Unigram(Unigram::read(metadata, vocabulary, spacing, unknown)?)
        }
        "bert" => {
            let lowercase = flag("tokenizer.ggml.normalizer.lowercase", true)?;
            let cleaning = Cleaning {
                lowercase,
                strip_accents: flag("tokenizer.ggml.normalizer.strip_accents", lowercase)?,
            };
            Model::WordPiece(WordPiece::new(vocabulary, cleaning, special.unknown))
        }
        "rwkv" => Model::Rwkv(Rwkv::new(vocabulary, special.unknown)),
        _ => Model::Plamo2(Plamo2::read(metadata, vocabulary)?),
    })
}

fn ends(
    metadata: &Metadata,
    habits: &Habits,
    special: &SpecialTokens,
    name: &str,
    pre: Option<&Pre>,
) -> Result<(Option<u32>, Option<u32>), Diagnostic> {
    let add = |key: &str, id_key: &str, habit: bool, forced: bool, id: Option<u32>| {
        let wanted = metadata.get_bool(key)?.unwrap_or(habit) || forced;
        match (wanted, id) {
            (false, _) => Ok(None),
            (true, Some(id)) => Ok(Some(id)),
            (true, None) => Err(unusable(
                metadata,
                format!("{key} is true, but {id_key} does not name a token"),
            )),
        }
    };
    // BERT adds both tokens, even if the keys say otherwise.
    let bert = name == "bert";
    let gemma = pre.is_some_and(|p| p.bytes == Bytes::Gemma);
    let begin = add(
        "tokenizer.ggml.add_bos_token",
        "tokenizer.ggml.bos_token_id",
        habits.add_bos,
        gemma || bert,
        special.bos,
    )?;
    let end = match bert {
        true => add(
            "tokenizer.ggml.add_sep_token",
            "tokenizer.ggml.seperator_token_id",
            habits.add_eos,
            true,
            special.separator,
        )?,
        false => add(
            "tokenizer.ggml.add_eos_token",
            "tokenizer.ggml.eos_token_id",
            habits.add_eos,
            false,
            special.eos,
        )?,
    };
    Ok((begin, end))
}
