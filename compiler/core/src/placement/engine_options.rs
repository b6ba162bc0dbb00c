//! The options of an engine's command that change its memory and that tpc itself lacks.

use tpc_ir::DType;

/// The options. The defaults match a program that computes the logits of every token, such as `llama-bench`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// True if the sequences share one cache (`--kv-unified`).
    pub unified: bool,
    /// True if the program is a server: it computes the logits of the last token of each sequence.
    pub serves: bool,
    /// True if the command does not set the number of sequences: a server then has several that share one cache.
    pub open_slots: bool,
    /// True if caches of layers with a window have a cell per token of the context (`--swa-full`).
    pub whole_windows: bool,
    /// Element types of the draft's caches (`-ctkd -ctvd`).
    pub draft_caches: [DType; 2],
    /// Tokens drafted at once (`--spec-draft-n-max`); `None` for the engine's default.
    pub drafted_tokens: Option<u64>,
    /// Bytes of the devices' cache of experts that are on the host (`--moe-cache-mib`).
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
