//! What a plan costs: time per device from a roofline, collectives from latency and bandwidth, memory.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tpc_ir::{Bindings, DType, Op, Place, Symbol};

use super::topology::{DeviceProfile, Link, Topology};

/// The batches that a plan is priced for, and how they are weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// One token after a long prompt.
    pub decode: Bindings,
    /// One largest batch of a prompt.
    pub prefill: Bindings,
}

impl Workload {
    /// Cells of context that a decoded token attends to, at most.
    pub const DECODE_DEPTH: u64 = 4096;
    /// Prompt tokens per generated token.
    pub const PROMPT_WEIGHT: f64 = 4.0;
    /// Price of a byte that a device holds, in reads of a byte.
    pub const MEMORY_PRICE: f64 = 0.5;
    /// Prices tried one after another while a plan does not fit the devices' memory.
    pub const SCARCE_MEMORY: [f64; 2] = [8.0, 128.0];

    /// The batches for a context of `n_ctx` cells (`n_ctx_swa` in layers with a window) and batches of `ubatch`.
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

    /// Tokens of the prefill batch.
    pub fn ubatch(&self) -> f64 {
        self.prefill.get(Symbol::NTokens) as f64
    }
}

/// Work of one op on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Operations.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
}

impl Work {
    /// Microseconds on a device.
    pub fn time_us(self, d: &DeviceProfile) -> f64 {
        (self.flops / d.flops).max(self.bytes / d.bandwidth) * 1e6
    }
}

/// Bytes per element of a type, block overhead included.
pub fn element_bytes(dtype: DType) -> f64 {
    dtype.block_bytes() as f64 / dtype.block_len() as f64
}

/// Microseconds of an all-reduce of `bytes` over `n` devices in a ring.
pub fn all_reduce_us(link: Link, n: usize, bytes: f64) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let n = n as f64;
    link.latency_us + 2.0 * (n - 1.0) / n * bytes / link.bandwidth * 1e6
}

/// Microseconds of a collective over `n` devices whose operand has `bytes` over all of them. An all-reduce is a
/// reduce-scatter and an all-gather in one, so that either alone moves half as much after the same latency.
pub fn collective_us(op: &Op, link: Link, n: usize, bytes: f64) -> f64 {
    match op {
        Op::AllReduce(_) => all_reduce_us(link, n, bytes),
        _ => all_reduce_us(link, n, bytes / 2.0),
    }
}

/// Microseconds of a copy between two places whose largest parts have so many bytes. Devices have a link to the host
/// each, so that the largest part counts; a part that stays on its device costs nothing. Inputs of the batch go out
/// together, and no latency is counted for one of them.
pub fn copy_us(
    topology: &Topology,
    [from, to]: [Place; 2],
    parts: [Option<u64>; 2],
    of_input: bool,
) -> f64 {
    if from == to && parts[1] <= parts[0] {
        return 0.0;
    }
    let link = if [from, to].contains(&Place::Host) {
        topology.host_link
    } else {
        topology.link
    };
    let bytes = parts[0].min(parts[1]).unwrap_or(0) as f64;
    let latency = if of_input { 0.0 } else { link.latency_us };
    latency + bytes / link.bandwidth * 1e6
}

/// The expected largest number of `draws` independent draws that fall to one device, with these chances each.
pub fn expected_max(draws: u64, shares: &[f64]) -> f64 {
    let total: f64 = shares.iter().sum();
    if draws == 0 || total <= 0.0 {
        return 0.0;
    }
    let mean = shares.iter().fold(0.0_f64, |a, &s| a.max(s)) / total * draws as f64;
    if draws > 64 {
        // Normal approximation of the maximum over n binomials.
        let n = shares.iter().filter(|&&s| s > 0.0).count() as f64;
        return (mean + (2.0 * mean * n.ln().max(0.0)).sqrt()).min(draws as f64);
    }
    // P(max ≤ m) = draws! · [xᵈ] Π_devices Σ_{i ≤ m} (p x)ⁱ / i!
    let k = draws as usize;
    let factorial: Vec<f64> = (0..=k)
        .scan(1.0, |f, i| {
            if i > 0 {
                *f *= i as f64;
            }
            Some(*f)
        })
        .collect();
    let series = |s: &f64| -> Vec<f64> {
        let p = s / total;
        (0..=k).map(|j| p.powi(j as i32) / factorial[j]).collect()
    };
    let series: Vec<Vec<f64>> = shares.iter().map(series).collect();
    let at_most = |m: usize| {
        let mut poly = vec![0.0; k + 1];
        poly[0] = 1.0;
        for terms in &series {
            let mut next = vec![0.0; k + 1];
            for (i, c) in poly.iter().enumerate() {
                let last = m.min(k - i);
                for (x, term) in next[i..=i + last].iter_mut().zip(terms) {
                    *x += c * term;
                }
            }
            poly = next;
        }
        poly[k] * factorial[k]
    };
    (0..k).map(|m| 1.0 - at_most(m)).sum()
}

/// [`expected_max`] with its answers kept: pricing asks the same for every device and most sets of options.
#[derive(Debug, Default)]
pub struct Draws(RefCell<BTreeMap<(u64, Vec<u64>), f64>>);

impl Draws {
    /// The expected largest number of `draws` independent draws that fall to one device, the devices having these
    /// numbers of things to draw.
    pub fn busiest(&self, draws: u64, lens: Vec<u64>) -> f64 {
        let mut known = self.0.borrow_mut();
        *known
            .entry((draws, lens))
            .or_insert_with_key(|(draws, lens)| {
                let shares: Vec<f64> = lens.iter().map(|&n| n as f64).collect();
                expected_max(*draws, &shares)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_max_of_small_cases() {
        assert!((expected_max(1, &[1.0; 4]) - 1.0).abs() < 1e-9);
        assert!((expected_max(2, &[1.0, 1.0]) - 1.5).abs() < 1e-9);
        assert!((expected_max(3, &[1.0]) - 3.0).abs() < 1e-9);
        let eight = expected_max(8, &[1.0; 8]);
        assert!(eight > 2.4 && eight < 2.8, "{eight}");
    }
}
