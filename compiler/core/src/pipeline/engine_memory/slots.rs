use tpc_ir::{Bindings, Symbol, Window};

use crate::placement::EngineOptions;
use crate::placement::Placement;
use tpc_ggml::engines::MemoryFacts;
use tpc_models::Drafting;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    /// Cells per cache. Each sequence has a cache, or all share one.
    each: u64,
    each_window: u64,
    streams: u64,
    sequences: u64,
    tokens: u64,
    /// Tokens per batch with logits.
    outputs: u64,
    /// States of earlier tokens that a recurrence keeps per sequence, in addition to the last state.
    pub(super) snapshots: u64,
}

impl Slots {
    pub(super) fn new(
        facts: &MemoryFacts,
        placement: &Placement,
        window: Option<Window>,
        ctx_size: u64,
    ) -> Slots {
        let EngineOptions {
            unified,
            serves,
            open_slots,
            whole_windows,
            drafted_tokens,
            ..
        } = placement.engine_options;
        let stepped = |n: u64| n.checked_next_multiple_of(facts.cell_step).unwrap_or(n);
        let is_open = serves && open_slots;
        let sequences = match is_open {
            true => placement.build.defaults.slots,
            false => placement.parallel.max(1),
        };
        let shared = unified || is_open || sequences == 1;
        let streams = if shared { 1 } else { sequences };
        let each = stepped(stepped(ctx_size) / streams);
        let ubatch = placement.ubatch_size.min(stepped(ctx_size));
        let reach = |w: Window| {
            let seen = w
                .tokens()
                .saturating_mul(if shared { sequences } else { 1 });
            stepped(seen.saturating_add(ubatch).min(each)).min(each)
        };
        let each_window = match window {
            Some(w) if !whole_windows => reach(w),
            _ => each,
        };
        let tokens = ubatch.div_ceil(sequences).saturating_mul(sequences);
        let drafted = match placement.drafting {
            Drafting::None => 0,
            Drafting::Mtp => drafted_tokens.unwrap_or(facts.drafted_tokens),
        };
        let outputs = match serves {
            true => sequences.saturating_mul(drafted.saturating_add(1)),
            false => ubatch,
        };
        Slots {
            each,
            each_window,
            streams,
            sequences,
            tokens,
            outputs: outputs.min(ubatch),
            snapshots: drafted,
        }
    }

    /// Returns the slots of a draft model's context, with one result per sequence.
    pub(super) fn of_draft(self) -> Slots {
        Slots {
            outputs: self.sequences.min(self.outputs),
            snapshots: 0,
            ..self
        }
    }

    /// Returns the sizes of the largest prompt batch with full caches. The engine reserves buffers for this batch.
    pub(super) fn batch(&self) -> Bindings {
        let states = self
            .sequences
            .saturating_mul(self.snapshots.saturating_add(1));
        Bindings::default()
            .with(Symbol::NTokens, self.tokens)
            .with(Symbol::NKv, self.each)
            .with(Symbol::NKvSwa, self.each_window)
            .with(Symbol::NCtx, self.each.saturating_mul(self.streams))
            .with(
                Symbol::NCtxSwa,
                self.each_window.saturating_mul(self.streams),
            )
            .with(Symbol::NSeqs, self.sequences)
            .with(Symbol::NSeqTokens, self.tokens / self.sequences)
            .with(Symbol::NSeqMax, states)
            .with(Symbol::NOutputs, self.outputs)
    }
}
