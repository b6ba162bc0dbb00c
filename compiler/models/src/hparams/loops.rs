use super::keys::Keys;
use super::limits::MAX_LAYERS;
use crate::description::LoopForm;
use crate::error::ArchError;

/// Number and order of runs of the layers. Runs share weights and have their own caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loops {
    Counted {
        count: usize,
        /// True if the output norm is applied between runs.
        normed: bool,
    },
    Stacks(Stacks),
}

/// Two stacks of layers. The low stack comes first in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stacks {
    pub(crate) layers: usize,
    /// Runs of the low stack before each run of the high stack.
    pub(crate) low: usize,
}

impl Loops {
    pub(super) fn read(
        keys: &Keys<'_>,
        form: LoopForm,
        n_layer: usize,
    ) -> Result<Loops, ArchError> {
        let (once, no_norm) = (1, false);
        match form {
            LoopForm::Once => Ok(Loops::Counted {
                count: once,
                normed: no_norm,
            }),
            LoopForm::Counted => read_count(keys, n_layer),
            LoopForm::Stacks => read_stacks(keys, n_layer).map(Loops::Stacks),
        }
    }

    /// Returns the number of layer runs for `n_layer` layers in the file.
    pub(super) const fn runs(self, n_layer: usize) -> usize {
        match self {
            Loops::Counted { count, .. } => n_layer * count,
            Loops::Stacks(_) => n_layer,
        }
    }

    /// Returns the block whose weights a run uses.
    pub(super) const fn block(self, run: usize, n_layer: usize) -> usize {
        match self {
            Loops::Counted { .. } => run % n_layer,
            Loops::Stacks(stacks) => {
                let high = (run / stacks.layers) % (stacks.low + 1) == stacks.low;
                run % stacks.layers + if high { stacks.layers } else { 0 }
            }
        }
    }
}

fn read_count(keys: &Keys<'_>, n_layer: usize) -> Result<Loops, ArchError> {
    const KEY: &str = "num_loops";
    let count = keys.count(KEY)?.unwrap_or(1);
    let layers = count.saturating_mul(n_layer as u64);
    if layers > MAX_LAYERS {
        let expected = format!("at most {MAX_LAYERS} layers in all loops");
        return Err(keys.out_of_range(KEY, count, expected));
    }
    let skipped = keys.flag("skip_loop_final_norm")?.unwrap_or(false);
    Ok(Loops::Counted {
        count: usize::try_from(count).expect("invariant: at most MAX_LAYERS"),
        normed: count > 1 && !skipped,
    })
}

fn read_stacks(keys: &Keys<'_>, n_layer: usize) -> Result<Stacks, ArchError> {
    const LAYERS: &str = "hrm.layers_per_stack";
    let layers = keys.require_count(LAYERS)?;
    let low = keys.require_count("hrm.l_cycles")?;
    let high = keys.require_count("hrm.h_cycles")?;
    let runs = low.saturating_add(1).saturating_mul(high);
    if layers.saturating_mul(runs) != n_layer as u64 {
        return Err(ArchError::Contradiction {
            key: keys.name("block_count"),
            found: n_layer.to_string(),
            with: format!("{} = {layers} and {runs} runs of stacks", keys.name(LAYERS)),
            expected: "the product of both numbers".into(),
        });
    }
    let small = |n| usize::try_from(n).expect("invariant: at most MAX_LAYERS");
    Ok(Stacks {
        layers: small(layers),
        low: small(low),
    })
}
