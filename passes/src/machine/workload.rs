use tpc_ir::{Bindings, Symbol};

/// The priced batches and their weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// One token after a long prompt.
    pub decode: Bindings,
    /// One largest prompt batch.
    pub prefill: Bindings,
}

impl Workload {
    /// The maximum number of context cells that a decoded token attends to.
    pub const DECODE_DEPTH: u64 = 4096;
    /// Prompt tokens per generated token.
    pub const PROMPT_WEIGHT: f64 = 4.0;
    /// Price of a stored byte, in reads of a byte.
    pub const MEMORY_PRICE: f64 = 0.5;
    /// The memory prices tried in turn until a plan fits.
    pub const SCARCE_MEMORY: [f64; 2] = [8.0, 128.0];

    /// Returns the batches for `n_ctx` cells (`n_ctx_swa` in layers with a window) and prompt batches of `ubatch`
    /// tokens.
    pub fn new(n_ctx: u64, n_ctx_swa: u64, ubatch: u64, parallel: u64) -> Workload {
        let depth = n_ctx.min(Self::DECODE_DEPTH);
        let base = Bindings::default()
            .with(Symbol::NCtx, n_ctx)
            .with(Symbol::NCtxSwa, n_ctx_swa)
            .with(Symbol::NSeqMax, parallel)
            .with(Symbol::NKv, depth)
            .with(Symbol::NKvSwa, depth.min(n_ctx_swa));
        let prefill = base
            .with(Symbol::NTokens, ubatch)
            .with(Symbol::NSeqTokens, ubatch);
        Workload {
            decode: base,
            prefill,
        }
    }

    /// Returns the batches with cells counted in units of `unit` cells.
    #[must_use]
    pub fn in_units(self, unit: u64) -> Workload {
        Workload {
            decode: self.decode.in_units(unit),
            prefill: self.prefill.in_units(unit),
        }
    }

    /// Returns the number of tokens in the prompt batch.
    pub fn ubatch(&self) -> f64 {
        self.prefill.get(Symbol::NTokens) as f64
    }
}
