//! Options of an engine's command that change its memory and that tpc lacks.

use tpc_ir::DType;

/// The options. The defaults match a program that computes every token's logits, such as `llama-bench`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// True if sequences share one cache (`--kv-unified`).
    pub unified: bool,
    /// True for a server, which computes the logits of each sequence's last token.
    pub serves: bool,
    /// True if the command leaves the number of sequences open: a server then has several that share one cache.
    pub open_slots: bool,
    /// True if window layers have a cell per context token (`--swa-full`).
    pub whole_windows: bool,
    /// Draft cache types (`-ctkd -ctvd`).
    pub draft_caches: [DType; 2],
    /// Tokens drafted at once (`--spec-draft-n-max`); `None` for the engine's default.
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
