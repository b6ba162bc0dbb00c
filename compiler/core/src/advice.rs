//! What would make a plan fit that does not: each cure is planned before it is named.

use tpc_ir::{Bindings, DType, Op, Place};
use tpc_passes::footprint::footprints;

use crate::pipeline::Compiled;
use crate::placement::{HostExperts, Placement, SplitMode};
use tpc_diag::Diagnostic;

/// Plans a model under another placement.
pub type Planner<'a> = dyn Fn(&Placement) -> Result<Compiled, Vec<Diagnostic>> + 'a;

/// Contexts are tried in these steps.
const CELLS: u64 = 256;
/// Cache types that are tried, with little loss first.
const CACHES: [DType; 2] = [DType::Q8_0, DType::Q4_0];

/// The options under which a model fits that does not fit as `compiled` under `placement`, as people would type them.
/// Each is the mildest of its kind, and every one of them was planned and found to fit.
pub fn cures(placement: &Placement, compiled: &Compiled, plan: &Planner<'_>) -> Vec<String> {
    // Only what the user asked for changes, not the mode.
    let base = Placement {
        split_mode: compiled.mode,
        ..placement.clone()
    };
    let fitting = |p: &Placement| plan(p).is_ok_and(|c| fits(&c));
    let mut out = Vec::new();
    let context = |p: &mut Placement, n: u64| p.ctx_size = Some(n * CELLS);
    let most = compiled.caches.n_ctx.div_ceil(CELLS).saturating_sub(1);
    if let Some(n) = largest(most, &|n| fitting(&with(&base, |p| context(p, n)))) {
        out.push(format!("-c {}", n * CELLS));
    }
    for cache in CACHES {
        let smaller = |p: &mut Placement| (p.cache_type_k, p.cache_type_v) = (cache, cache);
        let saves =
            |t: DType| t.block_bytes() * cache.block_len() > cache.block_bytes() * t.block_len();
        let worth = saves(base.cache_type_k) || saves(base.cache_type_v);
        if worth && fitting(&with(&base, smaller)) {
            out.push(format!("-ctk {cache} -ctv {cache}"));
            break;
        }
    }
    let n_layer = compiled.model.summary.n_block();
    let experts = |(_, i): (tpc_ir::Inst, &tpc_ir::InstData)| matches!(i.op, Op::MulMatId(_));
    let on_host = base.host_experts.count(n_layer);
    if compiled.model.graph.insts().any(experts) && on_host < n_layer {
        // One more than the layers whose experts stay on the devices: with none left, all are on the host.
        let first = |n: u64| HostExperts::First(n_layer + 1 - n);
        let kept = |n: u64| with(&base, |p| p.host_experts = first(n));
        if let Some(n) = largest(n_layer - on_host, &|n| fitting(&kept(n))) {
            out.push(format!("-ncmoe {}", n_layer + 1 - n));
        }
    }
    if let Some(shares) = by_memory(&base)
        && fitting(&with(&base, |p| p.tensor_split = Some(shares.clone())))
    {
        let shown: Vec<String> = shares.iter().map(|s| format!("{s:.0}")).collect();
        out.push(format!("-ts {}", shown.join(",")));
    }
    let all = base
        .n_gpu_layers
        .map_or(n_layer + 1, |n| n.min(n_layer + 1));
    let layers = |n: u64| with(&base, |p| p.n_gpu_layers = Some(n));
    if let Some(n) = largest(all.saturating_sub(1), &|n| fitting(&layers(n))).filter(|n| *n > 0) {
        out.push(format!("-ngl {n}"));
    }
    out
}

fn with(base: &Placement, change: impl FnOnce(&mut Placement)) -> Placement {
    let mut out = base.clone();
    change(&mut out);
    out
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

/// Shares in proportion to memory, in GiB; `None` where it is not known, or not what differs.
fn by_memory(placement: &Placement) -> Option<Vec<f64>> {
    if placement.devices.len() < 2 || placement.split_mode == SplitMode::None {
        return None;
    }
    let gib = |d: usize| Some((placement.topology.device(d).memory? / f64::from(1 << 30)).round());
    let shares: Option<Vec<f64>> = (0..placement.devices.len()).map(gib).collect();
    shares.filter(|s| s.iter().all(|&x| x > 0.0) && placement.tensor_split.as_ref() != Some(s))
}

/// Whether every device and the host have the memory for their part, as far as the topology says what they have.
pub fn fits(compiled: &Compiled) -> bool {
    let topology = &compiled.request.topology;
    let batch: Bindings = compiled.memory_batch();
    footprints(&compiled.programs, &batch)
        .iter()
        .all(|(place, print)| {
            let capacity = match place {
                Place::Device(d) => topology.device(d.index()).memory,
                Place::Host => topology.host.memory,
                Place::Group(_) => None,
            };
            capacity.is_none_or(|c| print.total() as f64 <= c)
        })
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
