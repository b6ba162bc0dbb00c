//! The tokens of a model, as a trie of bytes.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use llguidance::ParserFactory;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use tpc_diag::Diagnostic;
use tpc_text::{TokenKind, Tokenizer};

use crate::{codes, limits};

/// A model's tokens in the form that grammars need. Clones share the tokens.
#[derive(Clone)]
pub struct Vocabulary {
    factory: Arc<ParserFactory>,
    len: usize,
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Vocabulary {
    /// Creates the vocabulary of a tokenizer.
    ///
    /// # Errors
    /// Returns TPC0599 if no token ends a generation.
    pub fn new(tokenizer: &Tokenizer) -> Result<Vocabulary, Diagnostic> {
        let ends = &tokenizer.special().ends;
        let Some(&end) = ends.first() else {
            let message = "no token of the vocabulary ends a generation";
            return Err(unfit(message.to_owned()));
        };
        let words = words(tokenizer)?;
        // The trie panics on a vocabulary that is too large for its node numbers.
        let built = catch_unwind(AssertUnwindSafe(|| {
            let n = u32::try_from(words.len()).unwrap_or(u32::MAX);
            let trie = TokTrie::from(&TokRxInfo::new(n, end), &words).with_eos_tokens(ends);
            let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
            ParserFactory::new_simple(&environment)
        }));
        let mut factory = match built {
            Ok(Ok(factory)) => factory,
            Ok(Err(e)) => return Err(unfit(format!("the vocabulary is unusable: {e:#}"))),
            Err(_) => return Err(unfit("the vocabulary is too large".to_owned())),
        };
        factory.quiet();
        *factory.limits_mut() = limits::parser();
        Ok(Vocabulary {
            factory: Arc::new(factory),
            len: words.len(),
        })
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the vocabulary is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn factory(&self) -> &ParserFactory {
        &self.factory
    }
}

fn unfit(message: String) -> Diagnostic {
    Diagnostic::new(&codes::VOCABULARY, "vocabulary", message)
        .help("use a model file with tokenizer.ggml.eos_token_id")
}

/// Returns the bytes of each token. A special token starts with the marker, so that it never matches text; an empty
/// token is never allowed.
fn words(tokenizer: &Tokenizer) -> Result<Vec<Vec<u8>>, Diagnostic> {
    const MARKER: u8 = TokTrie::SPECIAL_TOKEN_MARKER;
    let n = u32::try_from(tokenizer.len()).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(tokenizer.len());
    for id in 0..n {
        let kind = tokenizer.kind(id);
        let mut bytes = Vec::new();
        if tokenizer.ends_generation(id) || kind.is_some_and(TokenKind::is_special) {
            bytes.push(MARKER);
            bytes.extend(tokenizer.token_text(id).unwrap_or_default().bytes());
        } else if kind != Some(TokenKind::Unused) {
            tokenizer.piece(id, &mut bytes)?;
            // The marker's byte never occurs in UTF-8.
            if bytes.contains(&MARKER) {
                bytes.clear();
            }
        }
        out.push(bytes);
    }
    Ok(out)
}
