//! The options of `tpc run --embeddings`.

use clap::ValueEnum;

use crate::generation::PoolingArgs;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct EmbeddingArgs {
    /// Print the embedding of each prompt instead of an answer.
    #[arg(long, visible_alias = "embedding")]
    pub(super) embeddings: bool,
    #[command(flatten)]
    pub(super) vectors: PoolingArgs,
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
