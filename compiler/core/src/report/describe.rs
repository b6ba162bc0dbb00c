//! Describes values, instructions, factors and costs in words.

use std::fmt::Write;

use tpc_ir::factor::Var;
use tpc_ir::op::Slot;
use tpc_ir::{Dim, Graph, Inst, Op, RANK, Value};
use tpc_passes::factors::{FactorPosition, Factors, Summand};
use tpc_passes::plan::{Cost, FactorFacts, ForbiddenSplit, Granules, Refusal};

use crate::format::{bytes, equal, span};

/// Returns a weight's tensor, a state's or value's name, or an unnamed value's number.
pub fn name(graph: &Graph, v: Value) -> String {
    match graph.def_op(v) {
        Op::Weight(w) => w.tensor.clone(),
        Op::State(s) => s.name.clone(),
        _ if graph.value(v).name.is_empty() => v.to_string(),
        _ => graph.value(v).name.clone(),
    }
}

/// Formats sizes without trailing 1s: `[64, 6*n_tokens]`.
pub fn sizes(dims: &[Dim; RANK]) -> String {
    let rank = dims.iter().rposition(|d| !d.is_one()).map_or(1, |i| i + 1);
    let sizes: Vec<String> = dims[..rank].iter().map(ToString::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

/// Formats a factor's position: `axis 1 (major of 3 factors, segment 2 of 3)`.
pub fn place(t: &FactorPosition) -> String {
    let mut out = format!("axis {}", t.axis);
    let mut more = Vec::new();
    match (t.position, t.factors) {
        (_, 0 | 1) => {}
        (0, n) => more.push(format!("major of {n} factors")),
        (p, n) if p + 1 == n => more.push(format!("minor of {n} factors")),
        (p, n) => more.push(format!("factor {} of {n}", p + 1)),
    }
    if let Some(s) = t.segment {
        more.push(format!("segment {} of {}", s + 1, t.segments));
    }
    if !more.is_empty() {
        let _ = write!(out, " ({})", more.join(", "));
    }
    out
}

/// Formats the factors of an axis, with a summand per segment: `8(f3)·128(f7) + 8(f3)·64(f9)`. Empty for an axis of one
/// index.
pub fn axis(factors: &Factors, segments: &[Summand], axis: usize) -> String {
    let factor = |l: &Var| {
        let size = factors.space.size(*l);
        match size.as_const() {
            Some(n) => format!("{n}(f{})", l.index()),
            None => format!("[{size}](f{})", l.index()),
        }
    };
    let product = |t: &Summand| {
        t.axes[axis]
            .iter()
            .map(factor)
            .collect::<Vec<_>>()
            .join("·")
    };
    let mut all: Vec<String> = segments.iter().map(product).collect();
    if all.iter().all(|p| *p == all[0]) {
        all.truncate(1);
    }
    all.join(" + ")
}

/// Describes where ranges may end.
pub fn granule(g: &Granules) -> String {
    match (g.hard, g.soft) {
        (Some(1), _) => "ranges may end anywhere".to_owned(),
        (Some(n), false) => format!("ranges end at multiples of {n}"),
        (Some(n), true) => {
            format!("ranges end at multiples of {n}, or inside blocks that devices share")
        }
        (None, true) => "ranges end inside blocks that devices share".to_owned(),
        (None, false) => "quantisation blocks prevent ranges inside the axis".to_owned(),
    }
}

/// Returns an op's name. An opaque op has its name in the capture.
pub fn op_name(op: &Op) -> &str {
    match op {
        Op::Opaque(o) => &o.name,
        op => op.name(),
    }
}

/// Describes an instruction by op, first result and layer: `` `rope` of Qcur-0 (layer 0) ``.
pub fn inst(graph: &Graph, i: Inst) -> String {
    let data = graph.inst(i);
    let op = op_name(&data.op);
    let of = data
        .results
        .first()
        .map_or_else(String::new, |&v| name(graph, v));
    let layer = data
        .layer
        .map_or_else(String::new, |l| format!(" (layer {l})"));
    format!("`{op}` of {of}{layer}")
}

/// Describes why a factor cannot be split.
pub fn forbidden(graph: &Graph, facts: &FactorFacts, f: &ForbiddenSplit) -> String {
    match &f.reason {
        Refusal::Whole(i) => needed_whole(graph, *i, f),
        Refusal::PinnedWhole(v) => {
            format!("an override mirrors {} on every device", name(graph, *v))
        }
        Refusal::Repeated(v) => format!(
            "{} contains it twice, and only one occurrence may be split",
            name(graph, *v)
        ),
        Refusal::Indexed(i) => {
            format!(
                "the index of {} counts along this and other factors together",
                inst(graph, *i)
            )
        }
        Refusal::Symbolic => "its size is known only at run time".to_owned(),
        Refusal::NotStored => "no weight or state has it".to_owned(),
        Refusal::Granule(g) => {
            format!(
                "quantisation blocks make units of {g} of its {} indices, too few to divide",
                facts.size
            )
        }
    }
}

fn needed_whole(graph: &Graph, i: Inst, f: &ForbiddenSplit) -> String {
    let mut out = inst(graph, i);
    let data = graph.inst(i);
    if let Some(cut) = &f.cut {
        let _ = write!(out, " cuts it: {cut}");
    } else if let Op::Opaque(_) = data.op {
        out.push_str(" lacks a sharding rule: its operands and results stay whole");
    } else {
        let at = |(slot, axis): &(Slot, usize)| match slot {
            Slot::Operand(o) => format!("axis {axis} of {}", name(graph, data.operands[*o])),
            Slot::Result(_) => format!("axis {axis} of its result"),
        };
        let all: Vec<String> = f.at.iter().map(at).collect();
        let _ = write!(out, " needs {} whole", all.join(" and "));
    }
    match f.others {
        0 => {}
        1 => out.push_str("; another op needs it whole too"),
        n => {
            let _ = write!(out, "; {n} other ops need it whole too");
        }
    }
    out
}

/// Formats layers: `in layers 0-3 and outside`. `None` stands for instructions outside layers.
pub fn layers(all: &[Option<u32>]) -> String {
    let inside: Vec<u32> = all.iter().copied().flatten().collect();
    let outside = inside.len() < all.len();
    match (inside.as_slice(), outside) {
        ([], _) => "outside layers".to_owned(),
        ([one], false) => format!("in layer {one}"),
        (many, false) => format!("in layers {}", span(many)),
        (many, true) => format!("in layers {} and outside", span(many)),
    }
}

/// Formats bytes per device: `2 × 12.0 MiB`. More than four different sizes become a range.
fn per_device(all: &[f64]) -> String {
    let each: Vec<String> = all.iter().map(|&b| bytes(b as u64)).collect();
    if each.len() <= 4 || each.iter().all(|b| *b == each[0]) {
        return equal(&each);
    }
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    format!("{} to {}", bytes(least as u64), bytes(most as u64))
}

/// Formats a cost: `12.1 µs per token, 340.0 µs per prompt batch, 2 × 12.0 MiB; price 14.2`.
pub fn cost(c: &Cost) -> String {
    format!(
        "{:.1} µs per token, {:.1} µs per prompt batch, {} of weights and states; price {:.2}",
        c.decode_us,
        c.prefill_us,
        per_device(&c.bytes),
        c.price_us
    )
}
