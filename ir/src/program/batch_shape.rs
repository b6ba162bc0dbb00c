use crate::dims::{Bindings, Symbol};

/// Batches up to these sizes, which share one set of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchShape {
    /// The largest value of each symbol. `n_ctx`, `n_ctx_swa` and `n_seq_max` are equal in all shapes of a program.
    pub most: Bindings,
}

impl BatchShape {
    /// True if a batch of these sizes has this shape.
    pub fn holds(&self, sizes: &Bindings) -> bool {
        let sizes = sizes.in_units(self.most.unit());
        Symbol::ALL.into_iter().all(|s| match s {
            Symbol::NCtx | Symbol::NCtxSwa | Symbol::NSeqMax => sizes.get(s) == self.most.get(s),
            Symbol::NTokens
            | Symbol::NKv
            | Symbol::NKvSwa
            | Symbol::NSeqs
            | Symbol::NSeqTokens
            | Symbol::NOutputs => sizes.get(s) <= self.most.get(s),
        })
    }
}
