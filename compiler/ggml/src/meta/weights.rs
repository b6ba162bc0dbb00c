//! The states of weights and caches. A name pattern gives the split axis and the unit that stays on one device. Other
//! tensors are mirrored.

use tpc_gguf::TensorName;
use tpc_ir::RANK;

use super::layers::{Heads, Layers};
use super::states::{Segment, Split, SplitState};
use crate::capture::Record;

#[derive(Clone, Debug)]
pub(super) struct Proportions(Vec<f64>);

impl Proportions {
    pub(super) fn new(devices: usize, given: &[f64]) -> Proportions {
        let share = |i: usize| {
            given
                .get(i)
                .copied()
                .unwrap_or(if given.is_empty() { 1.0 } else { 0.0 })
        };
        Proportions((0..devices).map(share).collect())
    }

    /// Returns the devices' parts of `len` in multiples of `granule`, rounded down one device after another. Each
    /// layer begins with another device; the last device gets the remainder.
    fn parts(&self, len: u64, granule: u64, layer: usize) -> Vec<u64> {
        let n = self.0.len();
        let total: f64 = self.0.iter().sum();
        let mut sizes = vec![0; n];
        let (mut share, mut low) = (0.0, 0);
        for turn in 0..n {
            let device = (turn + layer) % n;
            share += self.0[device];
            let high = if turn + 1 == n || total <= 0.0 {
                len
            } else {
                let exact = (len as f64 * share / total + 1e-9) as u64;
                (exact / granule.max(1) * granule.max(1)).clamp(low, len)
            };
            sizes[device] = high - low;
            low = high;
        }
        sizes
    }
}

/// The unit of a split axis that stays on one device.
#[derive(Clone, Copy, Debug)]
enum Unit {
    KvGroup,
    /// Queries, keys and values, concatenated. Each is split in units of key heads.
    Fused,
    Recurrent,
    /// Indices that the named matrix contracts. The granule is at least 128 elements if that divides the axis, else a
    /// block.
    Inner(&'static str),
    Vocabulary,
}

/// A pattern: the name after `blk.N.`, the split axis, and the unit.
struct Pattern(&'static str, usize, Unit);

const PATTERNS: &[Pattern] = &[
    Pattern("attn_q.weight", 1, Unit::KvGroup),
    Pattern("attn_k.weight", 1, Unit::KvGroup),
    Pattern("attn_v.weight", 1, Unit::KvGroup),
    Pattern("attn_q.bias", 0, Unit::KvGroup),
    Pattern("attn_k.bias", 0, Unit::KvGroup),
    Pattern("attn_v.bias", 0, Unit::KvGroup),
    Pattern("attn_qkv.weight", 1, Unit::Fused),
    Pattern("attn_qkv.bias", 0, Unit::Fused),
    Pattern("attn_gate.weight", 1, Unit::KvGroup),
    Pattern("attn_output.weight", 0, Unit::KvGroup),
    Pattern("attn_sinks.weight", 0, Unit::KvGroup),
    Pattern("ssm_conv1d.weight", 1, Unit::Fused),
    Pattern("ssm_alpha.weight", 1, Unit::Recurrent),
    Pattern("ssm_beta.weight", 1, Unit::Recurrent),
    Pattern("ssm_dt.bias", 0, Unit::Recurrent),
    Pattern("ssm_a", 0, Unit::Recurrent),
    Pattern("ssm_out.weight", 0, Unit::Recurrent),
    Pattern("ffn_up.weight", 1, Unit::Inner("ffn_down.weight")),
    Pattern("ffn_gate.weight", 1, Unit::Inner("ffn_down.weight")),
    Pattern("ffn_down.weight", 0, Unit::Inner("ffn_down.weight")),
    Pattern("ffn_up.bias", 0, Unit::Inner("ffn_down.weight")),
    Pattern("ffn_gate.bias", 0, Unit::Inner("ffn_down.weight")),
    Pattern(
        "ffn_up_shexp.weight",
        1,
        Unit::Inner("ffn_down_shexp.weight"),
    ),
    Pattern(
        "ffn_gate_shexp.weight",
        1,
        Unit::Inner("ffn_down_shexp.weight"),
    ),
    Pattern(
        "ffn_down_shexp.weight",
        0,
        Unit::Inner("ffn_down_shexp.weight"),
    ),
    Pattern("ffn_up_exps.weight", 1, Unit::Inner("ffn_down_exps.weight")),
    Pattern(
        "ffn_gate_exps.weight",
        1,
        Unit::Inner("ffn_down_exps.weight"),
    ),
    Pattern(
        "ffn_gate_up_exps.weight",
        1,
        Unit::Inner("ffn_down_exps.weight"),
    ),
    Pattern(
        "ffn_down_exps.weight",
        0,
        Unit::Inner("ffn_down_exps.weight"),
    ),
    Pattern("ffn_up_exps.bias", 0, Unit::Inner("ffn_down_exps.weight")),
    Pattern("ffn_gate_exps.bias", 0, Unit::Inner("ffn_down_exps.weight")),
];

pub(super) struct Weights<'r> {
    records: &'r [Record],
    layers: Layers,
    proportions: Proportions,
}

impl<'r> Weights<'r> {
    pub(super) fn new(records: &'r [Record], proportions: Proportions) -> Weights<'r> {
        Weights {
            records,
            layers: Layers::from_records(records),
            proportions,
        }
    }

    pub(super) fn state(&self, leaf: usize) -> SplitState {
        let t = &self.records[leaf];
        self.named(t).map_or(SplitState::Mirrored, |s| match s {
            SplitState::Split(s) if s.axis >= RANK || s.len() != t.ne()[s.axis] => {
                SplitState::Mirrored
            }
            s => s,
        })
    }

    fn named(&self, t: &Record) -> Option<SplitState> {
        match t.name.as_str() {
            "output.weight" => return self.split(t, 1, Unit::Vocabulary, 0),
            "output.bias" => return self.split(t, 0, Unit::Vocabulary, 0),
            _ => {}
        }
        let name = TensorName::parse(&t.name);
        if let Some((layer, kind)) = name.cache() {
            let layer = layer as usize;
            return match kind {
                "k" | "v" => self.split(t, 0, Unit::KvGroup, layer),
                // The states of a recurrence are split like the weights.
                "r" => self
                    .has(layer, "ssm_conv1d.weight")
                    .then(|| self.channels(t, layer))?,
                "s" => self
                    .has(layer, "ssm_conv1d.weight")
                    .then(|| self.split(t, 0, Unit::Recurrent, layer))?,
                _ => None,
            };
        }
        let (layer, rest) = name.block()?;
        let layer = layer as usize;
        match rest {
            "ffn_down_exps.bias" => return Some(SplitState::Partial),
            // Norms with a row per head are split like the heads.
            "attn_q_norm.weight" | "attn_k_norm.weight" if t.ne()[1] > 1 => {
                return self.split(t, 1, Unit::KvGroup, layer);
            }
            _ => {}
        }
        let Pattern(_, axis, unit) = PATTERNS.iter().find(|p| p.0 == rest)?;
        self.split(t, *axis, *unit, layer)
    }

    fn find(&self, layer: usize, rest: &str) -> Option<&'r Record> {
        let name = format!("blk.{layer}.{rest}");
        self.records.iter().find(|t| t.is_leaf() && t.name == name)
    }

    fn has(&self, layer: usize, rest: &str) -> bool {
        self.find(layer, rest).is_some()
    }

    fn split(&self, t: &Record, axis: usize, unit: Unit, layer: usize) -> Option<SplitState> {
        let len = t.ne()[axis];
        let heads = self.layers.heads(layer);
        let segments = match unit {
            Unit::KvGroup => {
                let groups = match heads {
                    Some(Heads::Attention { kv, .. }) => kv,
                    Some(Heads::Recurrent { v, .. }) => v,
                    None => return self.blocks(t, axis, layer),
                };
                vec![self.units(len, groups, layer)?]
            }
            Unit::Fused => match heads? {
                Heads::Attention {
                    q,
                    kv,
                    k_dim,
                    v_dim,
                } => [(q, k_dim), (kv, k_dim), (kv, v_dim)]
                    .into_iter()
                    .map(|(heads, size)| heads.saturating_mul(size))
                    .map(|len| self.units(len, kv, layer))
                    .collect::<Option<Vec<_>>>()?,
                Heads::Recurrent { k, v, k_dim, v_dim } => [(k, k_dim), (k, k_dim), (v, v_dim)]
                    .into_iter()
                    .map(|(heads, size)| heads.saturating_mul(size))
                    .map(|len| self.units(len, k, layer))
                    .collect::<Option<Vec<_>>>()?,
            },
            Unit::Recurrent => match heads? {
                Heads::Recurrent { k, .. } => vec![self.units(len, k, layer)?],
                Heads::Attention { .. } => return None,
            },
            Unit::Inner(next) => {
                let next = self.find(layer, next)?;
                let inner = next.ne()[0];
                let block = next.dtype.block_len();
                let wide = block.max(128);
                let granule = if inner.is_multiple_of(wide) {
                    wide
                } else {
                    block
                };
                let sizes = self.proportions.parts(inner, granule, layer);
                let one = Segment { sizes, repeat: 1 };
                // A fused matrix has one segment per matrix.
                vec![one; usize::try_from(len / inner.max(1)).ok()?]
            }
            Unit::Vocabulary => vec![self.segment(len, t.dtype.block_len(), layer)],
        };
        Some(Split { axis, segments }.into())
    }

    fn units(&self, len: u64, units: u64, layer: usize) -> Option<Segment> {
        let granule = (units > 0 && len.is_multiple_of(units)).then(|| len / units)?;
        Some(self.segment(len, granule, layer))
    }

    fn segment(&self, len: u64, granule: u64, layer: usize) -> Segment {
        Segment {
            sizes: self.proportions.parts(len, granule, layer),
            repeat: 1,
        }
    }

    /// Splits a tensor of a layer whose heads are unknown. The granule is that of [`Unit::Inner`].
    fn blocks(&self, t: &Record, axis: usize, layer: usize) -> Option<SplitState> {
        let len = t.ne()[axis];
        let block = t.dtype.block_len();
        let wide = block.max(128);
        let granule = if len.is_multiple_of(wide) {
            wide
        } else {
            block
        };
        let segments = vec![self.segment(len, granule, layer)];
        Some(Split { axis, segments }.into())
    }

    /// Returns the split of a convolution's state: several values per channel of the fused projection.
    fn channels(&self, t: &Record, layer: usize) -> Option<SplitState> {
        let conv = self.find(layer, "ssm_conv1d.weight")?;
        let state = self.split(conv, 1, Unit::Fused, layer)?;
        let wide = state.split()?.scaled(t.ne()[0] / conv.ne()[1].max(1), 1)?;
        Some(wide.along(0).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_rounded_down_and_rotate() {
        let even = Proportions::new(3, &[]);
        assert_eq!(even.parts(2, 1, 0), [0, 1, 1]);
        assert_eq!(even.parts(2, 1, 1), [1, 0, 1]);
        assert_eq!(even.parts(384, 128, 0), [128, 128, 128]);
        let uneven = Proportions::new(2, &[3.0, 1.0]);
        assert_eq!(uneven.parts(512, 128, 0), [384, 128]);
        assert_eq!(uneven.parts(512, 128, 1), [384, 128]);
    }
}
