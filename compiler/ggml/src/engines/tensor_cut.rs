//! The devices' parts of each tensor. A tensor's name determines its split axis. Parts are whole heads and blocks.
//! In each further layer of the same kind, the rounding begins with the next device.

use super::head_sizes::{HeadSizes, LayerHeads};
use super::memory::MemoryFacts;
use super::shares::{Devices, lcm, state_granule};

/// A run of `len` elements along the split axis, split in multiples of `step`. The axis has `times` equal runs.
struct Segment {
    len: u64,
    times: u64,
    step: u64,
}

/// The split of a model's tensors.
#[derive(Clone, Copy, Debug)]
pub struct TensorCut<'a> {
    /// The memory rules.
    pub facts: &'a MemoryFacts,
    /// The heads of each layer.
    pub heads: &'a HeadSizes,
    /// The architecture's name.
    pub arch: &'a str,
    /// The devices.
    pub devices: Devices<'a>,
    /// The number of layers without draft layers.
    pub layers: u64,
}

const ATTENTION: [&str; 2] = ["attn_output.weight", "ssm_out.weight"];
const RECURRENT: [&str; 1] = ["ssm_out.weight"];
const FEED_FORWARD: [&str; 2] = ["ffn_down.weight", "ffn_down_exps.weight"];

impl TensorCut<'_> {
    /// Returns each device's fraction of a weight; `None` if every device has the whole weight.
    pub fn weight(&self, name: &str, dims: [u64; 4]) -> Option<Vec<f64>> {
        if name == "output.weight" {
            return Some(self.parts(&[whole(dims[1], 1)], self.layers as usize));
        }
        let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
        let layer: u32 = layer.parse().ok()?;
        let sizes = self.heads.layer(layer);
        let (axis, segments) = match sizes.recurrent {
            Some(head) => self.recurrent(layer, head, rest, dims),
            None => self.attention(layer, &sizes, rest, dims),
        }
        .or_else(|| self.feed_forward(layer, rest, dims))?;
        let turn = match rest.starts_with("attn_") {
            true => self.heads.turn(sizes.cache_of),
            false => self.heads.turn(layer),
        };
        debug_assert!(axis < 4);
        Some(self.parts(&segments, turn))
    }

    /// Returns each device's fraction of a cache with `row` elements per row.
    pub fn cache(&self, layer: u32, is_value: bool, row: u64) -> Vec<f64> {
        let sizes = self.heads.layer(layer);
        let step = self.kv_step(layer, &sizes, is_value);
        self.parts(&[whole(row, step)], self.heads.turn(layer))
    }

    /// Returns each device's fraction of a recurrent state.
    pub fn state(&self, layer: u32) -> Vec<f64> {
        let sizes = self.heads.layer(layer);
        let Some(head) = sizes.recurrent.filter(|&head| head > 1) else {
            return vec![1.0; self.devices.count];
        };
        let keys = sizes.recurrent_heads[0].saturating_mul(head);
        let step = self.recurrent_step(layer, head);
        self.parts(&[whole(keys, step)], self.heads.turn(layer))
    }

    fn recurrent_step(&self, layer: u32, head: u64) -> u64 {
        let [block, _] = self.heads.rows(layer, &RECURRENT);
        state_granule(block, head, self.facts.split_step)
    }

    /// Returns the split axis and segments of a recurrent layer's tensor.
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
        let [keys, values] = self.heads.layer(layer).recurrent_heads;
        let by_head = matches!(
            rest,
            "ssm_alpha.weight" | "ssm_beta.weight" | "ssm_ba.weight" | "ssm_dt.bias" | "ssm_a"
        );
        let unit = if by_head { 1 } else { head };
        let len = dims[axis];
        let part = keys.saturating_mul(unit);
        // Values are split into runs as long as the keys, so that each value is on its key's device.
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

    /// Returns the number of query rows that stay together. A query element has `rows` rows.
    fn q_step(&self, layer: u32, sizes: &LayerHeads, rows: u64) -> u64 {
        let group = sizes.group.saturating_mul(sizes.head_size[0]);
        let [block, _] = self.heads.rows(layer, &ATTENTION);
        self.devices
            .query_granule(group, rows, block, self.facts.split_step)
    }

    fn kv_step(&self, layer: u32, sizes: &LayerHeads, is_value: bool) -> u64 {
        let [k, v] = sizes.head_size;
        let keys = self.q_step(layer, sizes, 1) / sizes.group.max(1);
        match is_value {
            true => keys / k.max(1) * v,
            false => keys,
        }
    }

    fn attention(
        &self,
        layer: u32,
        sizes: &LayerHeads,
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
        if sizes.heads == 0 {
            return None;
        }
        let q = self.q_step(layer, sizes, 1);
        let [head, value_head] = sizes.head_size;
        let per_head = q / head.max(1);
        let len = dims[axis];
        // Some query matrices include a gate of the same size.
        let is_gated = len == 2 * sizes.heads.saturating_mul(head);
        let q_rows = match is_gated {
            true => self.q_step(layer, sizes, 2),
            false => q,
        };
        let step = match tensor {
            "attn_q" => q_rows,
            "attn_k" => self.kv_step(layer, sizes, false),
            "attn_v" => self.kv_step(layer, sizes, true),
            "attn_output" => per_head.saturating_mul(value_head),
            "attn_sinks" => per_head,
            "attn_gate" if len == sizes.heads => per_head,
            "attn_gate" => q,
            "attn_qkv" => {
                let [k, v] = [false, true].map(|is_value| self.kv_step(layer, sizes, is_value));
                let kv = sizes.heads / sizes.group.max(1);
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
        let [block, inner] = self.heads.rows(layer, &FEED_FORWARD);
        let step = lcm(block, self.facts.split_step);
        // A fused matrix is split like the matrices in it.
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

    fn parts(&self, segments: &[Segment], turn: usize) -> Vec<f64> {
        let mut held = vec![0_u64; self.devices.count];
        let mut all = 0_u64;
        for s in segments {
            let parts = self.devices.parts(s.len, s.step, turn);
            for (sum, part) in held.iter_mut().zip(parts) {
                *sum += part.saturating_mul(s.times);
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
