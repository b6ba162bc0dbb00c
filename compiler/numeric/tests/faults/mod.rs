//! Faults in captured graphs.

use tpc_ggml::capture::{self, Record};
use tpc_ggml::op::OpKind;

/// A graph with one fault.
pub(crate) struct Fault {
    pub(crate) what: &'static str,
    pub(crate) records: Vec<Record>,
    /// The line of the op with the fault.
    pub(crate) line: usize,
    /// True if the op is only in the graph without the fault.
    pub(crate) in_first: bool,
}

type Plant = fn(&[Record], usize) -> Option<Vec<Record>>;

const PLANTS: [(&str, Plant); 6] = [
    ("a changed base of RoPE", rope_base),
    ("swapped operands", swapped),
    ("another epsilon", epsilon),
    ("another activation", activation),
    ("a shifted view", shifted),
    ("a dropped scale", dropped),
];

/// The number of faults of each kind.
pub(crate) const KINDS: usize = PLANTS.len();

/// Plants one fault of a kind, in an op that the seed selects; `None` if no op can have it.
pub(crate) fn plant(records: &[Record], kind: usize, seed: usize) -> Option<Fault> {
    let (what, plant) = PLANTS[kind];
    let n = records.len();
    // Multiplication spreads the seeds over the graph.
    let start = seed.wrapping_mul(7919) % n;
    let ops = (0..n).map(|i| (start + i) % n);
    let mut planted = ops.filter_map(|i| Some((i, plant(records, i)?)));
    let (i, changed) = planted.next()?;
    Some(Fault {
        what,
        records: changed,
        line: records[i].line,
        in_first: what == "a dropped scale",
    })
}

fn with(records: &[Record], i: usize, t: Record) -> Option<Vec<Record>> {
    let mut out = records.to_vec();
    out[i] = t;
    // The parser decodes the parameters.
    let out = capture::records(&capture::write(&out)).ok()?;
    capture::read_fixed(&out, "fault").ok()?;
    Some(out)
}

fn word(t: &Record, i: usize, x: f32) -> Record {
    let mut words = t.words.clone();
    words.resize(words.len().max(i + 1), 0);
    words[i] = x.to_bits().cast_signed();
    Record { words, ..t.clone() }
}

fn rope_base(records: &[Record], i: usize) -> Option<Vec<Record>> {
    let t = &records[i];
    let base = f32::from_bits(t.words.get(5)?.cast_unsigned());
    t.is(OpKind::Rope)
        .then(|| with(records, i, word(t, 5, base * 1.01)))?
}

fn swapped(records: &[Record], i: usize) -> Option<Vec<Record>> {
    let t = &records[i];
    let kinds = [OpKind::Sub, OpKind::Div, OpKind::MulMat];
    if !kinds.iter().any(|k| t.is(*k)) || t.src[0] == t.src[1] {
        return None;
    }
    let shape = |p: usize| t.src[p].map(|s| records[s].ne());
    let square = t.ne()[0] == t.ne()[1] && t.ne()[2..] == [1, 1];
    if shape(0) != shape(1) || (t.is(OpKind::MulMat) && !square) {
        return None;
    }
    let src = vec![t.src[1], t.src[0]];
    with(records, i, Record { src, ..t.clone() })
}

fn epsilon(records: &[Record], i: usize) -> Option<Vec<Record>> {
    let t = &records[i];
    // L2_NORM divides by the larger of the norm and epsilon, so epsilon only matters for zeros.
    let eps = t.op.norm().filter(|_| !t.is(OpKind::L2Norm))?.eps;
    with(records, i, word(t, 0, eps * 10.0))
}

fn activation(records: &[Record], i: usize) -> Option<Vec<Record>> {
    let t = &records[i];
    let other = match t.op.name() {
        "SILU" => "GELU",
        "GELU" => "SILU",
        "SIGMOID" => "TANH",
        "RELU" => "ABS",
        "SWIGLU" => "GEGLU",
        "GEGLU" => "SWIGLU",
        "SOFTPLUS" => "SIGMOID",
        _ => return None,
    };
    let op = tpc_ggml::op::GgmlOp::parse(other, &[]);
    with(records, i, Record { op, ..t.clone() })
}

fn shifted(records: &[Record], i: usize) -> Option<Vec<Record>> {
    let t = &records[i];
    if !t.is(OpKind::View) || t.layout.offset == 0 {
        return None;
    }
    let mut changed = t.clone();
    changed.layout.offset -= t.dtype.block_bytes();
    with(records, i, changed)
}

fn dropped(records: &[Record], i: usize) -> Option<Vec<Record>> {
    let t = &records[i];
    let one = f32::from_bits(t.words.first()?.cast_unsigned()) == 1.0;
    // If a scale by 1 is dropped, the result stays the same.
    let is_scale = t.is(OpKind::Scale) && !t.is_view && !one;
    let before = t.src.first().copied().flatten()?;
    let viewed = |(n, r): (usize, &Record)| n != i && r.root == i;
    if !is_scale || records.iter().enumerate().any(viewed) {
        return None;
    }
    let mut out = records.to_vec();
    for r in &mut out {
        for s in r.src.iter_mut().flatten() {
            if *s == i {
                *s = before;
            }
        }
    }
    out.remove(i);
    let later = |s: &mut usize| *s -= usize::from(*s > i);
    for r in &mut out {
        r.src.iter_mut().flatten().for_each(later);
        later(&mut r.root);
    }
    let out = capture::records(&capture::write(&out)).ok()?;
    capture::read_fixed(&out, "fault").ok()?;
    Some(out)
}
