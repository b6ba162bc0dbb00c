use schemars::JsonSchema;
use serde::Serialize;

/// The output of `tpc verify` as JSON.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "only the schema needs it; each report is printed alone"
)]
pub(crate) enum Output<'a> {
    /// A model or a captured graph.
    Model(super::json::Report<'a>),
    /// An artefact.
    Artefact(super::artefact::Report<'a>),
}
