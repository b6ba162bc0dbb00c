//! Compares tpc's graphs with llama.cpp's graphs of the golden models in f32: the same ops with the same parameters on
//! tensors of the same size, in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value as Json;
use tpc_ir::op::{BinaryKind, NormKind, Op, RopeMode};
use tpc_ir::{Bindings, Dim, Graph, Symbol};

use super::*;

/// Number of instructions by op, parameters and result elements.
type Work = BTreeMap<String, usize>;

/// Returns a parameter as a number. Captures omit parameters that are all 0.
fn float(word: &Json) -> f32 {
    let word = u32::try_from(word.as_i64().unwrap_or(0) & 0xffff_ffff).unwrap();
    f32::from_bits(word)
}

/// Norms of a capture. Some are computed twice, with their factor, and count once.
#[derive(Default)]
struct Norms {
    first: BTreeMap<String, u64>,
    same: BTreeMap<u64, u64>,
}

impl Norms {
    fn is_known(&mut self, op: &str, node: &Json) -> bool {
        if op != "RMS_NORM" && op != "MUL" {
            return false;
        }
        let id = node["id"].as_u64().unwrap();
        let operands = node["src"].as_array().unwrap().iter();
        let operands: Vec<u64> = operands
            .filter_map(Json::as_u64)
            .map(|src| self.same.get(&src).copied().unwrap_or(src))
            .collect();
        let what = format!("{op} {} {operands:?}", node["params"]);
        let first = *self.first.entry(what).or_insert(id);
        self.same.insert(id, first);
        first != id
    }
}

fn captured(path: &Path) -> (Work, BTreeSet<String>) {
    let mut work = Work::new();
    let mut weights = BTreeSet::new();
    let text = std::fs::read_to_string(path).unwrap();
    let nodes: Vec<Json> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // silu(x) / x is a sigmoid.
    let silus = nodes.iter().filter(|n| n["op"] == "SILU");
    let silus: BTreeSet<u64> = silus.map(|n| n["id"].as_u64().unwrap()).collect();
    let divisions = nodes.iter().filter(|n| n["op"] == "DIV");
    let divided: BTreeSet<u64> = divisions.map(|n| n["src"][0].as_u64().unwrap()).collect();
    let mut norms = Norms::default();
    for node in &nodes {
        let op = node["op"].as_str().unwrap();
        if norms.is_known(op, node) {
            continue;
        }
        let name = node["name"].as_str().unwrap();
        let parts = [".weight", ".bias", ".scales"];
        let of_block = name.starts_with("blk.");
        if op == "NONE" && (of_block || parts.iter().any(|part| name.ends_with(part))) {
            weights.insert(name.to_owned());
        }
        let ne = node["ne"].as_array().unwrap();
        let elements: u64 = ne.iter().map(|n| n.as_u64().unwrap()).product();
        let p = |i: usize| &node["params"][i];
        let what = match op {
            "DIV" if silus.contains(&node["src"][0].as_u64().unwrap()) => "sigmoid".to_owned(),
            "MUL_MAT" | "MUL_MAT_ID" | "ADD_ID" | "MUL" | "DIV" => op.to_lowercase(),
            "SWIGLU" | "GEGLU" | "GELU" | "RELU" | "SQR" | "TANH" => op.to_lowercase(),
            "SILU" if divided.contains(&node["id"].as_u64().unwrap()) => continue,
            "SILU" | "SIGMOID" | "SOFTPLUS" | "SSM_CONV" => op.to_lowercase(),
            // Scaling by 0 clears the state of a starting sequence.
            "SCALE" if float(p(0)) == 0.0 => "mul".to_owned(),
            "SWIGLU_OAI" => format!("swiglu_oai {} {}", float(p(2)), float(p(3))),
            "RMS_NORM" | "NORM" => format!("{} {}", op.to_lowercase(), float(p(0))),
            // Only llama.cpp's graph may scale by 1.
            "SCALE" if float(p(0)) == 1.0 => continue,
            "SCALE" => format!("scale {}", float(p(0))),
            "SOFT_MAX" => format!("soft_max {}", float(p(0))),
            "CLAMP" => format!("clamp {} {}", float(p(0)), float(p(1))),
            "FLASH_ATTN_EXT" => {
                let sinks = node["src"].as_array().unwrap().len() > 4;
                let [scale, max_bias, softcap] = [0, 1, 2].map(|i| float(p(i)));
                format!("flash_attn {scale} {max_bias} {softcap} {sinks}")
            }
            "ROPE" => {
                let mode = match p(2).as_u64().unwrap() {
                    0 => "norm",
                    2 => "neox",
                    8 => "mrope",
                    40 => "imrope",
                    other => panic!("rope mode {other}"),
                };
                let floats: Vec<f32> = (5..11).map(|i| float(p(i))).collect();
                let factors = node["src"].as_array().unwrap().len() > 2;
                format!("rope {mode} {} {} {floats:?} {factors}", p(1), p(4))
            }
            _ => continue,
        };
        *work.entry(format!("{what} -> {elements}")).or_default() += 1;
    }
    (work, weights)
}

/// Returns a graph's instructions for the captures' batch, and its weights.
fn lowered(graph: &Graph) -> (Work, BTreeSet<String>) {
    let bindings = Bindings::default()
        .with(Symbol::NTokens, 8)
        .with(Symbol::NSeqTokens, 8)
        .with(Symbol::NOutputs, 8)
        .with(Symbol::NKv, 512)
        .with(Symbol::NKvSwa, 512);
    let mut work = Work::new();
    let mut weights = BTreeSet::new();
    for (_, inst) in graph.insts() {
        let what = match &inst.op {
            Op::Weight(w) => {
                weights.insert(w.tensor.clone());
                continue;
            }
            Op::MulMat(_) | Op::MulMatId(_) | Op::AddId(_) | Op::SsmConv(_) => {
                inst.op.name().to_owned()
            }
            Op::Unary(_) => inst.op.name().to_owned(),
            Op::Binary(b) if b.kind == BinaryKind::Mul || b.kind == BinaryKind::Div => {
                inst.op.name().to_owned()
            }
            Op::Glu(g) if g.alpha != 0.0 => format!("{} {} {}", inst.op.name(), g.alpha, g.limit),
            Op::Glu(_) => inst.op.name().to_owned(),
            Op::Norm(n) => {
                assert_ne!(n.kind, NormKind::L2);
                format!("{} {}", inst.op.name(), n.eps)
            }
            Op::Scale(s) if s.scale == 1.0 => continue,
            Op::Scale(s) => format!("scale {}", s.scale),
            Op::SoftMax(s) => format!("soft_max {}", s.scale),
            Op::Clamp(c) => format!("clamp {} {}", c.min, c.max),
            Op::FlashAttn(f) => {
                let sinks = inst.operands.len() > 4;
                let (scale, max_bias, softcap) = (f.scale, f.max_bias, f.softcap);
                format!("flash_attn {scale} {max_bias} {softcap} {sinks}")
            }
            Op::Rope(r) => {
                let mode = match r.mode {
                    RopeMode::Norm => "norm",
                    RopeMode::Neox => "neox",
                    RopeMode::Mrope { .. } => "mrope",
                    RopeMode::Imrope { .. } => "imrope",
                };
                let floats = [
                    r.freq_base,
                    r.freq_scale,
                    r.ext_factor,
                    r.attn_factor,
                    r.beta_fast,
                    r.beta_slow,
                ];
                let factors = inst.operands.len() > 2;
                format!(
                    "rope {mode} {} {} {floats:?} {factors}",
                    r.n_dims, r.n_ctx_orig
                )
            }
            _ => continue,
        };
        let ty = &graph.value(inst.results[0]).ty;
        let elements = ty.elements().as_ref().and_then(|d: &Dim| d.eval(&bindings));
        let elements = elements.unwrap();
        *work.entry(format!("{what} -> {elements}")).or_default() += 1;
    }
    (work, weights)
}

#[test]
fn every_golden_does_the_work_of_its_capture() {
    let Some(folder) = shared("graphs") else {
        return;
    };
    for (name, header) in goldens() {
        let (expected, weights) = captured(&folder.join(format!("{}.jsonl", capture(&name))));
        let model = lower(&header, &options(&header)).unwrap();
        let (found, read) = lowered(&model.graph);
        assert_eq!(found, expected, "{name}");
        assert_eq!(read, weights, "{name}");
    }
}
