//! The options of `tpc run --embeddings`.

use clap::ValueEnum;
use tpc_diag::{Diagnostic, codes};
use tpc_engine::embed::{Normalisation, Pooling};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct EmbeddingArgs {
    /// Print the embedding of each prompt instead of an answer.
    #[arg(long, visible_alias = "embedding")]
    pub(super) embeddings: bool,
    /// Pooling of a text's tokens: none, mean, cls, last or rank [default: the file's].
    #[arg(long, value_name = "TYPE", value_parser = pooling, requires = "embeddings")]
    pub(super) pooling: Option<Pooling>,
    /// Normalisation of embeddings: -1 none, 0 largest absolute value 32760, 1 taxicab, 2 Euclidean, above 2 p-norm.
    #[arg(
        long,
        value_name = "N",
        default_value = "2",
        value_parser = normalisation,
        allow_hyphen_values = true
    )]
    pub(super) embd_normalize: Normalisation,
    /// Format of embeddings: text, array ([[…], …]), json (as OpenAI's interface), json+ (json and the cosine
    /// similarities), or raw (a line of numbers per embedding).
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(super) embd_output_format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A named line per embedding.
    Text,
    /// An array of arrays.
    Array,
    /// A list of objects.
    Json,
    /// The list and the similarities.
    #[value(name = "json+")]
    JsonSimilarities,
    /// A line of numbers per embedding.
    Raw,
}

pub(crate) fn pooling(text: &str) -> Result<Pooling, Diagnostic> {
    let found = Pooling::ALL.into_iter().find(|p| p.name() == text);
    found.ok_or_else(|| {
        let message = format!("`{text}` is not a pooling");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--pooling", message);
        d.help("use none, mean, cls, last or rank")
    })
}

pub(crate) fn normalisation(text: &str) -> Result<Normalisation, Diagnostic> {
    let found = text.parse().ok().and_then(Normalisation::of_number);
    found.ok_or_else(|| {
        let message = format!("--embd-normalize must be an integer of at least -1, not `{text}`");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--embd-normalize", message);
        d.help("use -1 (none), 0 (largest absolute value), 1 (taxicab) or 2 (Euclidean)")
    })
}
