//! How often all layers run.

use super::keys::Keys;
use super::model::MAX_LAYERS;
use crate::description::KeyUse;
use crate::error::ArchError;

/// How often all layers run. Their weights are the same each time, their caches are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loops {
    /// At least 1.
    pub(crate) count: usize,
    /// Whether the norm of the output stands between.
    pub(crate) normed: bool,
}

impl Loops {
    pub(super) fn read(keys: &Keys<'_>, used: KeyUse, n_layer: usize) -> Result<Loops, ArchError> {
        const KEY: &str = "num_loops";
        let count = match used {
            KeyUse::Ignored => None,
            KeyUse::Read | KeyUse::ReadOr(_) => keys.count(KEY)?,
        };
        let count = count.unwrap_or(1);
        let layers = count.saturating_mul(n_layer as u64);
        if layers > MAX_LAYERS {
            let expected = format!("at most {MAX_LAYERS} layers in all loops");
            return Err(keys.out_of_range(KEY, count, expected));
        }
        let skipped = keys.flag("skip_loop_final_norm")?.unwrap_or(false);
        Ok(Loops {
            count: usize::try_from(count).expect("invariant: at most MAX_LAYERS"),
            normed: count > 1 && !skipped,
        })
    }
}
