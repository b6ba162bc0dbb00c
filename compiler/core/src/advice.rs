//! Configurations that fit where the one asked for does not. Each is planned before it is named.

use tpc_ir::{DType, Inst, InstData, Op};

use crate::pipeline::Compiled;
use crate::placement::{HostExperts, Placement, SplitMode};
use tpc_diag::Diagnostic;

/// Plans a model under another placement.
pub type Planner<'a> = dyn Fn(&Placement) -> Result<Compiled, Vec<Diagnostic>> + 'a;

/// The step of contexts that are tried, in cells.
const CELLS: u64 = 256;
/// The cache types that are tried, the most precise first.
const CACHES: [DType; 2] = [DType::Q8_0, DType::Q4_0];

/// The options under which a model fits that does not fit as `compiled` under `placement`, as people would type them.
///
/// Each is the mildest of its kind: the largest context, the most precise caches, the fewest experts or layers on the
/// host.
pub fn cures(placement: &Placement, compiled: &Compiled, plan: &Planner<'_>) -> Vec<String> {
    let trial = Trial {
        // Only what the user asked for changes, not the mode.
        base: Placement {
            split_mode: compiled.mode,
            ..placement.clone()
        },
        compiled,
        plan,
    };
    let cures = [
        trial.smaller_context(),
        trial.smaller_caches(),
        trial.experts_on_host(),
        trial.split_by_memory(),
        trial.layers_on_host(),
    ];
    cures.into_iter().flatten().collect()
}

/// A placement that does not fit, and the means to try others.
struct Trial<'a> {
    base: Placement,
    compiled: &'a Compiled,
    plan: &'a Planner<'a>,
}

impl Trial<'_> {
    /// Whether the model fits with this change.
    fn fits(&self, change: impl FnOnce(&mut Placement)) -> bool {
        let mut placement = self.base.clone();
        change(&mut placement);
        (self.plan)(&placement).is_ok_and(|c| c.fits())
    }

    /// `-c`: the largest context.
    fn smaller_context(&self) -> Option<String> {
        let steps = self.compiled.caches.n_ctx.div_ceil(CELLS);
        let fits = |n: u64| self.fits(|p| p.ctx_size = Some(n * CELLS));
        let n = largest(steps.saturating_sub(1), &fits)?;
        Some(format!("-c {}", n * CELLS))
    }

    /// `-ctk` and `-ctv`: the most precise cache type.
    fn smaller_caches(&self) -> Option<String> {
        let base = &self.base;
        let smaller = |cache: DType, than: DType| {
            than.block_bytes() * cache.block_len() > cache.block_bytes() * than.block_len()
        };
        let fits = |cache: &DType| {
            (smaller(*cache, base.cache_type_k) || smaller(*cache, base.cache_type_v))
                && self.fits(|p| (p.cache_type_k, p.cache_type_v) = (*cache, *cache))
        };
        let cache = CACHES.into_iter().find(fits)?;
        Some(format!("-ctk {cache} -ctv {cache}"))
    }

    /// `-ncmoe`: the fewest layers whose experts stay on the host.
    fn experts_on_host(&self) -> Option<String> {
        let model = &self.compiled.model;
        let n_layer = model.summary.n_block();
        let experts = |(_, i): (Inst, &InstData)| matches!(i.op, Op::MulMatId(_));
        let on_host = self.base.host_experts.count(n_layer);
        if on_host >= n_layer || !model.graph.insts().any(experts) {
            return None;
        }
        // Of `n` from 1, all but `n - 1` layers: with 1, the experts of all layers are on the host.
        let first = |n: u64| n_layer + 1 - n;
        let fits = |n: u64| self.fits(|p| p.host_experts = HostExperts::First(first(n)));
        let n = largest(n_layer - on_host, &fits)?;
        Some(format!("-ncmoe {}", first(n)))
    }

    /// `-ts`: device weights in proportion to memory.
    fn split_by_memory(&self) -> Option<String> {
        let weights = by_memory(&self.base)?;
        let shown: Vec<String> = weights.iter().map(|w| format!("{w:.0}")).collect();
        self.fits(|p| p.tensor_split = Some(weights))
            .then(|| format!("-ts {}", shown.join(",")))
    }

    /// `-ngl`: the most layers on the devices.
    fn layers_on_host(&self) -> Option<String> {
        let all = self.compiled.model.summary.n_block() + 1;
        let now = self.base.n_gpu_layers.map_or(all, |n| n.min(all));
        let n = largest(now.saturating_sub(1), &|n| {
            self.fits(|p| p.n_gpu_layers = Some(n))
        })?;
        Some(format!("-ngl {n}"))
    }
}

/// The largest number from 1 to `most` that is good, when smaller ones are good as well.
fn largest(most: u64, good: &dyn Fn(u64) -> bool) -> Option<u64> {
    // Often not even the smallest will do.
    if most == 0 || !good(1) {
        return None;
    }
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = high - (high - low) / 2;
        if good(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}

/// Device weights in proportion to memory, in GiB; `None` where it is not known, or changes nothing.
fn by_memory(placement: &Placement) -> Option<Vec<f64>> {
    if placement.devices.len() < 2 || placement.split_mode == SplitMode::None {
        return None;
    }
    let gib = |d: usize| Some((placement.topology.device(d).memory? / f64::from(1 << 30)).round());
    let shares: Option<Vec<f64>> = (0..placement.devices.len()).map(gib).collect();
    shares.filter(|s| s.iter().all(|&x| x > 0.0) && placement.tensor_split.as_ref() != Some(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_good_number() {
        for most in 0..20 {
            for limit in 0..=most {
                let found = largest(most, &|n| n <= limit);
                assert_eq!(found, (limit > 0).then_some(limit));
            }
        }
    }
}
