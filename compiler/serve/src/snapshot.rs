use serde::Serialize;
use tpc_engine::prefix::PrefixStatistics;

/// The state of all slots between two batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// One state per slot.
    pub(crate) slots: Vec<SlotState>,
    /// Number of requests that wait for a slot.
    pub(crate) waiting: usize,
    /// Statistics of the prefix store.
    pub(crate) prefixes: PrefixStatistics,
}

/// The state of a slot.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SlotState {
    /// The slot's number.
    pub(crate) id: u32,
    /// Maximum tokens of the slot.
    pub(crate) n_ctx: usize,
    /// True while the slot answers a request.
    pub(crate) is_processing: bool,
    /// The request's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id_task: Option<u64>,
    /// Tokens in the slot's caches.
    pub(crate) n_past: usize,
    /// Tokens of the prompt.
    pub(crate) n_prompt_tokens: usize,
    /// Tokens of the answer so far.
    pub(crate) n_decoded: usize,
}
