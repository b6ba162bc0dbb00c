//! Options of an engine that change its memory.

use clap::Args;
use tpc_ir::DType;

use super::output::Failure;
use super::values::{self, Parsed};
use tpc_core::placement::EngineOptions;

/// The heading in help; `foreign` finds the options by this heading.
pub(super) const HEADING: &str = "Memory of llama.cpp (with --engine llama.cpp)";

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct EngineMemoryArgs {
    /// Count the server's memory: logits of last tokens only; without -np, four slots in one cache.
    #[arg(long)]
    server: bool,
    /// Use one cache for all sequences.
    #[arg(long)]
    kv_unified: bool,
    /// Give the caches of sliding-window layers one cell per token of the context.
    #[arg(long)]
    swa_full: bool,
    /// Type of the draft's K cache [-ctkd; default: f16].
    #[arg(long, alias = "spec-draft-type-k", value_name = "TYPE", value_parser = values::cache_type_k())]
    cache_type_k_draft: Option<Parsed<DType>>,
    /// Type of the draft's V cache [-ctvd; default: f16].
    #[arg(long, alias = "spec-draft-type-v", value_name = "TYPE", value_parser = values::cache_type_v())]
    cache_type_v_draft: Option<Parsed<DType>>,
    /// Tokens drafted at once [default: 3].
    #[arg(long, value_name = "N", value_parser = values::drafted_tokens())]
    spec_draft_n_max: Option<Parsed<u64>>,
    /// Device memory that caches experts of the host, in MiB.
    #[arg(long, value_name = "N", value_parser = values::expert_cache())]
    moe_cache_mib: Option<Parsed<u64>>,
}

fn given<T: Clone>(value: Option<&Parsed<T>>) -> Result<Option<T>, Failure> {
    value.cloned().transpose().map_err(Failure::usage)
}

impl EngineMemoryArgs {
    pub(super) fn drafted_tokens(&self) -> Result<Option<u64>, Failure> {
        given(self.spec_draft_n_max.as_ref())
    }

    /// True if both have the same options. The number of drafted tokens may differ.
    pub(super) fn agrees_with(&self, other: &EngineMemoryArgs) -> bool {
        let same = EngineMemoryArgs {
            spec_draft_n_max: other.spec_draft_n_max.clone(),
            ..self.clone()
        };
        same == *other
    }

    /// Returns the engine's options. `open_slots` is true if the line has no `-np`.
    pub(super) fn options(&self, open_slots: bool) -> Result<EngineOptions, Failure> {
        let default = EngineOptions::default();
        let [k, v] = default.draft_caches;
        let mib = given(self.moe_cache_mib.as_ref())?.unwrap_or(0);
        Ok(EngineOptions {
            unified: self.kv_unified,
            serves: self.server,
            open_slots,
            whole_windows: self.swa_full,
            draft_caches: [
                given(self.cache_type_k_draft.as_ref())?.unwrap_or(k),
                given(self.cache_type_v_draft.as_ref())?.unwrap_or(v),
            ],
            drafted_tokens: given(self.spec_draft_n_max.as_ref())?,
            expert_cache: mib.saturating_mul(1 << 20),
        })
    }
}
