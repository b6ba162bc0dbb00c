//! Options of other engines that change their memory. tpc lacks these options.

use tpc_ir::DType;

/// Engine options. The defaults match a program that computes every token's logits, such as `llama-bench`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// True if sequences share one cache (`--kv-unified`).
    pub unified: bool,
    /// True for a server, which computes only the logits of each sequence's last token.
    pub serves: bool,
    /// True if the command omits the number of sequences. A server then has several, which share one cache.
    pub open_slots: bool,
    /// True if window layers have a cell per token of the context (`--swa-full`).
    pub whole_windows: bool,
    /// K and V cache types of the draft model (`-ctkd -ctvd`).
    pub draft_caches: [DType; 2],
    /// Drafted tokens per step (`--spec-draft-n-max`); `None` for the engine's default.
    pub drafted_tokens: Option<u64>,
    /// Bytes of the devices' cache of host experts (`--moe-cache-mib`).
    pub expert_cache: u64,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            unified: false,
            serves: false,
            open_slots: false,
            whole_windows: false,
            draft_caches: [DType::F16; 2],
            drafted_tokens: None,
            expert_cache: 0,
        }
    }
}
