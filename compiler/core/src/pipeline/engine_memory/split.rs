//! The parts of each tensor that the devices of a tensor split hold: cut by the names of tensors, in steps of whole heads and
//! blocks, rounded down one device after another, beginning with another device in each layer.

use super::geometry::{Geometry, LayerGeometry};
use tpc_ggml::engines::MemoryFacts;

/// A run of elements along the split axis that is cut by itself, as often as it is repeated.
struct Segment {
    len: u64,
    times: u64,
    step: u64,
}

/// The cut of the tensors of a model among devices.
pub(super) struct TensorCut<'a> {
    pub(super) facts: &'a MemoryFacts,
    pub(super) geometry: &'a Geometry,
    pub(super) arch: &'a str,
    /// The devices' proportions.
    pub(super) shares: &'a [f64],
    /// Layers of the model, without drafts.
    pub(super) layers: u64,
}

const ATTENTION: [&str; 2] = ["attn_output.weight", "ssm_out.weight"];
const RECURRENT: [&str; 1] = ["ssm_out.weight"];
const FEED_FORWARD: [&str; 2] = ["ffn_down.weight", "ffn_down_exps.weight"];

impl TensorCut<'_> {
    /// The parts of a weight with these sizes, which sum up to 1; `None` for one that every device has whole.
    pub(super) fn weight(&self, name: &str, dims: [u64; 4]) -> Option<Vec<f64>> {
        if name == "output.weight" {
            return Some(self.parts(&[whole(dims[1], 1)], self.layers as usize));
        }
        let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
        let layer: u32 = layer.parse().ok()?;
        let geometry = self.geometry.layer(layer);
        let (axis, segments) = match geometry.recurrent {
            Some(head) => self.recurrent(layer, head, rest, dims),
            None => self.attention(layer, &geometry, rest, dims),
        }
        .or_else(|| self.feed_forward(layer, rest, dims))?;
        let turn = match rest.starts_with("attn_") {
            true => self.geometry.turn(geometry.cache_of),
            false => self.geometry.turn(layer),
        };
        debug_assert!(axis < 4);
        Some(self.parts(&segments, turn))
    }

    /// The parts of a cache whose rows have so many elements, of keys or of values.
    pub(super) fn cache(&self, layer: u32, is_value: bool, row: u64) -> Vec<f64> {
        let geometry = self.geometry.layer(layer);
        let step = self.kv_step(layer, &geometry, is_value);
        self.parts(&[whole(row, step)], self.geometry.turn(layer))
    }

    /// The parts of a recurrent state.
    pub(super) fn state(&self, layer: u32) -> Vec<f64> {
        let geometry = self.geometry.layer(layer);
        let Some(head) = geometry.recurrent.filter(|&head| head > 1) else {
            return vec![1.0; self.shares.len()];
        };
        let keys = geometry.recurrent_heads[0].saturating_mul(head);
        let step = self.recurrent_step(layer, head);
        self.parts(&[whole(keys, step)], self.geometry.turn(layer))
    }

    fn recurrent_step(&self, layer: u32, head: u64) -> u64 {
        let block = lcm(
            self.geometry.rows(layer, &RECURRENT)[0],
            self.facts.split_step,
        );
        lcm(block, head)
    }

    /// The cut of a tensor of a recurrent layer's mixer.
    fn recurrent(
        &self,
        layer: u32,
        head: u64,
        rest: &str,
        dims: [u64; 4],
    ) -> Option<(usize, Vec<Segment>)> {
        let axis = match rest {
            "attn_qkv.weight" | "attn_gate.weight" | "ssm_conv1d.weight" => 1,
            "ssm_alpha.weight" | "ssm_beta.weight" | "ssm_ba.weight" => 1,
            "ssm_dt.bias" | "ssm_a" | "ssm_out.weight" => 0,
            _ => return None,
        };
        if head <= 1 {
            return None;
        }
        let step = self.recurrent_step(layer, head);
        let [keys, values] = self.geometry.layer(layer).recurrent_heads;
        let by_head = matches!(
            rest,
            "ssm_alpha.weight" | "ssm_beta.weight" | "ssm_ba.weight" | "ssm_dt.bias" | "ssm_a"
        );
        let unit = if by_head { 1 } else { head };
        let len = dims[axis];
        let part = keys.saturating_mul(unit);
        // Values are cut in runs of the keys' length, so that each lies with its key.
        let in_turns = self.arch != "qwen3next" && part > 0 && len.is_multiple_of(part);
        let step = step / head * unit;
        let segments = match in_turns {
            true => vec![Segment {
                len: part,
                times: len / part,
                step,
            }],
            false if values > 0 && len == 2 * part + values * unit => vec![
                Segment {
                    len: part,
                    times: 2,
                    step,
                },
                whole(values * unit, step),
            ],
            false => vec![whole(len, step)],
        };
        Some((axis, segments))
    }

    /// Query elements of one key head, and of the blocks that devices should have whole.
    fn q_units(&self, layer: u32, geometry: &LayerGeometry) -> [u64; 2] {
        let group = geometry.group.saturating_mul(geometry.head_size[0]);
        let [mut block, _] = self.geometry.rows(layer, &ATTENTION);
        while block < self.facts.split_step
            && block.saturating_mul(self.shares.len() as u64) < group
        {
            block *= 2;
        }
        [group, block]
    }

    /// The query elements that stay together: those of whole key heads, in whole blocks.
    fn q_step(&self, layer: u32, geometry: &LayerGeometry) -> u64 {
        let [group, block] = self.q_units(layer, geometry);
        lcm(group, block)
    }

    fn kv_step(&self, layer: u32, geometry: &LayerGeometry, is_value: bool) -> u64 {
        let [k, v] = geometry.head_size;
        let keys = self.q_step(layer, geometry) / geometry.group.max(1);
        match is_value {
            true => keys / k.max(1) * v,
            false => keys,
        }
    }

    /// The cut of a tensor of attention.
    fn attention(
        &self,
        layer: u32,
        geometry: &LayerGeometry,
        rest: &str,
        dims: [u64; 4],
    ) -> Option<(usize, Vec<Segment>)> {
        let (tensor, kind) = rest.rsplit_once('.').unwrap_or((rest, ""));
        let axis = match (tensor, kind) {
            ("attn_q" | "attn_k" | "attn_v" | "attn_qkv" | "attn_gate", "weight") => 1,
            ("attn_q" | "attn_k" | "attn_v" | "attn_qkv" | "attn_gate", "bias") => 0,
            ("attn_sinks" | "attn_output", "weight") => 0,
            ("attn_q_norm" | "attn_k_norm", "weight") if dims[1] > 1 => 1,
            _ => return None,
        };
        if geometry.heads == 0 {
            return None;
        }
        let q = self.q_step(layer, geometry);
        let [head, value_head] = geometry.head_size;
        let per_head = q / head.max(1);
        let len = dims[axis];
        // Some query matrices hold a gate of the same size.
        let is_gated = len == 2 * geometry.heads.saturating_mul(head);
        let [group, block] = self.q_units(layer, geometry);
        let q_rows = if is_gated { lcm(2 * group, block) } else { q };
        let step = match tensor {
            "attn_q" => q_rows,
            "attn_k" => self.kv_step(layer, geometry, false),
            "attn_v" => self.kv_step(layer, geometry, true),
            "attn_output" => per_head.saturating_mul(value_head),
            "attn_sinks" => per_head,
            "attn_gate" if len == geometry.heads => per_head,
            "attn_gate" => q,
            "attn_qkv" => {
                let [k, v] = [false, true].map(|is_value| self.kv_step(layer, geometry, is_value));
                let kv = geometry.heads / geometry.group.max(1);
                let (k_len, v_len) = (kv * head, kv * value_head);
                let segments = vec![
                    whole(len.saturating_sub(k_len + v_len), q_rows),
                    whole(k_len, k),
                    whole(v_len, v),
                ];
                return Some((axis, segments));
            }
            _ => 1,
        };
        Some((axis, vec![whole(len, step)]))
    }

    /// The cut of a tensor of a feed-forward network.
    fn feed_forward(
        &self,
        layer: u32,
        rest: &str,
        dims: [u64; 4],
    ) -> Option<(usize, Vec<Segment>)> {
        let (tensor, kind) = rest.rsplit_once('.')?;
        let axis = match (tensor, kind) {
            ("ffn_up" | "ffn_gate" | "ffn_gate_up", "weight") => 1,
            ("ffn_up_exps" | "ffn_gate_exps" | "ffn_gate_up_exps", "weight") => 1,
            ("ffn_up" | "ffn_gate" | "ffn_up_exps" | "ffn_gate_exps", "bias") => 0,
            ("ffn_down" | "ffn_down_exps", "weight") => 0,
            _ => return None,
        };
        let [block, inner] = self.geometry.rows(layer, &FEED_FORWARD);
        let step = lcm(block, self.facts.split_step);
        // A fused matrix is cut like the matrices in it.
        let times = match dims[axis].checked_div(inner) {
            Some(n) if n > 1 && dims[axis].is_multiple_of(inner) => n,
            _ => 1,
        };
        let segment = Segment {
            len: dims[axis] / times,
            times,
            step,
        };
        Some((axis, vec![segment]))
    }

    /// The part of each device in all of these segments.
    fn parts(&self, segments: &[Segment], turn: usize) -> Vec<f64> {
        let n = self.shares.len();
        let mut held = vec![0_u64; n];
        let mut all = 0_u64;
        let turn = turn % n.max(1);
        // In the engine's precision, so that what lies on a border is on the same side.
        let mut sums = Vec::with_capacity(n);
        let mut sum = 0.0_f32;
        for i in 0..n {
            sum += self.shares[(i + turn) % n] as f32;
            sums.push(sum);
        }
        let equal = self.shares.windows(2).all(|w| w[0] == w[1]);
        for s in segments {
            let mut low = 0;
            for (i, &end) in sums.iter().enumerate() {
                let high = match i + 1 {
                    last if last == n => s.len,
                    next if equal => s.len * next as u64 / n as u64,
                    _ => (s.len as f32 * end / sum) as u64,
                };
                let step = if i + 1 == n { 1 } else { s.step.max(1) };
                let high = (high / step * step).max(low);
                held[(i + turn) % n] += (high - low).saturating_mul(s.times);
                low = high;
            }
            all = all.saturating_add(s.len.saturating_mul(s.times));
        }
        let of_all = |&h: &u64| h as f64 / all.max(1) as f64;
        held.iter().map(of_all).collect()
    }
}

const fn whole(len: u64, step: u64) -> Segment {
    Segment {
        len,
        times: 1,
        step,
    }
}

fn lcm(a: u64, b: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    match gcd(a, b) {
        0 => 1,
        g => (a / g).saturating_mul(b),
    }
}
