use schemars::JsonSchema;
use serde::Serialize;

/// The output of `tpc perplexity` as JSON. Numbers that JSON cannot represent, such as infinity, are `null`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "only the schema needs it; each report is printed alone"
)]
pub(crate) enum Output<'a> {
    /// The scores of a text.
    Score(super::score::Report<'a>),
    /// The divergence from a saved base.
    Divergence(super::report::FromBase),
    /// The divergences of several settings from the first.
    Settings(super::compare::Report<'a>),
}
