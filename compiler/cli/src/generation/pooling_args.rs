//! The options that decide how a text becomes one vector.

use tpc_diag::{Diagnostic, codes};
use tpc_engine::embed::{Normalisation, Pooling};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PoolingArgs {
    /// Pooling of a text's tokens: none, mean, cls, last or rank [default: the file's].
    #[arg(long, value_name = "TYPE", value_parser = pooling, requires = "embeddings")]
    pub(crate) pooling: Option<Pooling>,
    /// Normalisation of embeddings: -1 none, 0 largest absolute value 32760, 1 taxicab, 2 Euclidean, above 2 p-norm.
    #[arg(
        long,
        value_name = "N",
        default_value = "2",
        value_parser = normalisation,
        allow_hyphen_values = true
    )]
    pub(crate) embd_normalize: Normalisation,
}

fn pooling(text: &str) -> Result<Pooling, Diagnostic> {
    let found = Pooling::ALL.into_iter().find(|p| p.name() == text);
    found.ok_or_else(|| {
        let message = format!("`{text}` is not a pooling");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--pooling", message);
        d.help("use none, mean, cls, last or rank")
    })
}

fn normalisation(text: &str) -> Result<Normalisation, Diagnostic> {
    let found = text.parse().ok().and_then(Normalisation::of_number);
    found.ok_or_else(|| {
        let message = format!("--embd-normalize must be an integer of at least -1, not `{text}`");
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--embd-normalize", message);
        d.help("use -1 (none), 0 (largest absolute value), 1 (taxicab) or 2 (Euclidean)")
    })
}
