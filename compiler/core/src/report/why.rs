//! Why tensors are split as they are: what `--why` prints, and the key `why` of the report.

use std::fmt::Write;

use serde::Serialize;
use tpc_ir::{Class, Dim, Interval, Place, RANK, Value};
use tpc_passes::factors::Selection;
use tpc_passes::factors::Term;
use tpc_passes::plan::{Cost, FactorFacts, FactorWhy, Refusal, SplitOption, Verdict, why};

use super::table::{lens, span};
use super::{TensorReport, kinds, words};
use crate::pipeline::Compiled;

/// Why a tensor, and those like it in other layers, are split as they are.
#[derive(Clone, Debug, Serialize)]
pub struct WhyReport {
    /// Name.
    pub tensor: String,
    /// Its number, as `dump --stage placed` prints it.
    pub value: String,
    /// Element type.
    pub dtype: &'static str,
    /// Sizes, axis 0 first: numbers, or text where they are those of a batch.
    pub ne: Vec<Size>,
    /// The layer it belongs to.
    pub layer: Option<u32>,
    /// Where it lives.
    pub place: String,
    /// Tensors of other layers of which the same holds.
    pub alike: Vec<String>,
    /// Per axis its factors, major first, as text: a product per segment.
    pub axes: Vec<String>,
    /// The factors.
    pub factors: Vec<FactorReport>,
    #[serde(skip)]
    headline: String,
    #[serde(skip)]
    layers: Vec<u32>,
}

/// A size: a number, or a polynomial in the sizes of a batch.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Size {
    /// A number.
    Number(u64),
    /// A polynomial as text.
    Symbolic(String),
}

impl From<&Dim> for Size {
    fn from(d: &Dim) -> Size {
        d.as_const()
            .map_or_else(|| Size::Symbolic(d.to_string()), Size::Number)
    }
}

/// One factor of a tensor.
#[derive(Clone, Debug, Serialize)]
pub struct FactorReport {
    /// Its number, as in `dump --stage factors`.
    pub factor: String,
    /// Its size.
    pub size: Size,
    /// What it is, for people.
    pub kind: Option<&'static str>,
    /// Ranges end at multiples of this; null where quantisation blocks leave no such place.
    pub granule: Option<u64>,
    /// Whether ranges may end inside blocks, which devices then share.
    pub shares_blocks: bool,
    /// The weights and states that it runs through.
    pub through: Vec<ThroughReport>,
    /// `split`, `one device`, `elsewhere`, `forbidden`, `possible` or `contradiction`.
    pub verdict: &'static str,
    /// The class that splits it.
    pub class: Option<String>,
    /// Indices of the class per device, or those that the alternative would give.
    pub ranges: Vec<[u64; 2]>,
    /// What forbids splitting it, in words.
    pub reason: Option<String>,
    /// The op that forbids it.
    pub op: Option<&'static str>,
    /// The first result of that op.
    pub op_result: Option<String>,
    /// The layer of that op.
    pub op_layer: Option<u32>,
    /// Classes that the alternative excludes.
    pub instead_of: Vec<String>,
    /// What the choice costs where the alternative would change it.
    pub chosen: Option<CostReport>,
    /// What the alternative costs there: to split a whole factor, to leave a split one whole.
    pub alternative: Option<CostReport>,
    #[serde(skip)]
    text: String,
}

/// A place of a factor in a tensor.
#[derive(Clone, Debug, Serialize)]
pub struct ThroughReport {
    /// The tensor.
    pub tensor: String,
    /// The axis.
    pub axis: usize,
    /// Its position among the factors of the axis, from 0, major first.
    pub position: usize,
    /// Factors of the axis.
    pub factors: usize,
    /// The segment, from 0; null where it is in all of them.
    pub segment: Option<usize>,
    #[serde(skip)]
    text: String,
}

/// Times and bytes.
#[derive(Clone, Debug, Serialize)]
pub struct CostReport {
    /// µs per token.
    pub decode_us: f64,
    /// µs per prompt batch.
    pub prefill_us: f64,
    /// What the planner compares, in µs per token.
    pub price_us: f64,
    /// Bytes of weights and states per device.
    pub bytes: Vec<u64>,
}

impl From<&Cost> for CostReport {
    fn from(c: &Cost) -> CostReport {
        CostReport {
            decode_us: c.decode_us,
            prefill_us: c.prefill_us,
            price_us: c.price_us,
            bytes: c.bytes.iter().map(|&b| b as u64).collect(),
        }
    }
}

/// Explains these values of the placed graph; values of alike layers together.
pub fn explain(compiled: &Compiled, values: &[Value], tensors: &[TensorReport]) -> Vec<WhyReport> {
    let mut groups: Vec<(Option<Alike<'_>>, Vec<Value>)> = Vec::new();
    for &v in values {
        let key = alike(compiled, v);
        match groups.iter_mut().find(|(k, _)| key.is_some() && *k == key) {
            Some((_, members)) => members.push(v),
            None => groups.push((key, vec![v])),
        }
    }
    groups
        .iter()
        .map(|(_, members)| one(compiled, members, tensors))
        .collect()
}

/// What makes tensors of different layers alike: the layer's signature, the tensor's position in it, and the ranges of
/// its factors.
type Alike<'a> = (&'a str, usize, Vec<Option<&'a [Interval]>>);

fn alike(compiled: &Compiled, v: Value) -> Option<Alike<'_>> {
    let planned = &compiled.planned;
    let inst = compiled.planned.graph.value(v).def.0;
    let Place::Group(group) = planned.graph.value(v).place else {
        return None;
    };
    let found = planned
        .regions
        .iter()
        .filter(|r| r.group == group)
        .find_map(|r| {
            let at = r.insts.binary_search(&inst).ok()?;
            r.layer.map(|_| (r.signature.as_str(), at))
        });
    let (signature, at) = found?;
    let chosen = planned.analysis.terms[v.index()]
        .iter()
        .flat_map(Term::leaves);
    let chosen = chosen.map(|l| {
        planned
            .choice
            .class_of(group, l)
            .map(|c| planned.choice.options[c.index()].ranges.as_slice())
    });
    Some((signature, at, chosen.collect()))
}

fn one(compiled: &Compiled, members: &[Value], tensors: &[TensorReport]) -> WhyReport {
    let graph = &compiled.planned.graph;
    let v = members[0];
    let found = why(&compiled.planned, &compiled.request, v);
    let data = graph.value(v);
    let tensor = words::name(graph, v);
    let place = data.place.to_string();
    let stored = tensors
        .iter()
        .find(|t| t.name == tensor && t.place == place);
    let rank = data
        .ty
        .dims
        .iter()
        .rposition(|d| !d.is_one())
        .map_or(1, |i| i + 1);
    let layer = |v: Value| graph.inst(graph.value(v).def.0).layer;
    let headline = match stored {
        None => format!("an activation on {place}"),
        Some(t) => match t.sharding.axis {
            None => format!("whole on {}", t.place),
            Some(a) => format!(
                "axis {a} split on {}, {}",
                t.place,
                lens(&t.sharding.ranges.lens())
            ),
        },
    };
    WhyReport {
        tensor,
        value: v.to_string(),
        dtype: data.ty.dtype.name(),
        ne: data.ty.dims[..rank].iter().map(Size::from).collect(),
        layer: layer(v),
        place,
        alike: members[1..]
            .iter()
            .map(|&m| words::name(graph, m))
            .collect(),
        axes: (0..RANK)
            .map(|a| words::axis(&compiled.planned.factors, &found.segments, a))
            .take(rank)
            .collect(),
        factors: found.factors.iter().map(|f| factor(compiled, f)).collect(),
        headline,
        layers: members.iter().filter_map(|&m| layer(m)).collect(),
    }
}

fn class(compiled: &Compiled, c: Class) -> String {
    format!("{c} `{}`", compiled.sharded.class(c).name)
}

fn ranges(o: &SplitOption) -> (Vec<[u64; 2]>, String) {
    let all: Vec<[u64; 2]> = o.ranges.iter().map(|r| [r.start, r.len]).collect();
    let text = lens(&all.iter().map(|r| r[1]).collect::<Vec<_>>());
    (all, text)
}

fn factor(compiled: &Compiled, f: &FactorWhy) -> FactorReport {
    let graph = &compiled.planned.graph;
    let FactorFacts {
        leaf,
        size,
        kind,
        granules,
        through,
        ..
    } = &f.facts;
    let mut out = FactorReport {
        factor: format!("f{}", leaf.index()),
        size: size.into(),
        kind: *kind,
        granule: granules.hard,
        shares_blocks: granules.soft && granules.hard != Some(1),
        through: through
            .iter()
            .map(|t| ThroughReport {
                tensor: words::name(graph, t.value),
                axis: t.axis,
                position: t.position,
                factors: t.factors,
                segment: t.segment,
                text: words::place(t),
            })
            .collect(),
        verdict: "",
        class: None,
        ranges: Vec::new(),
        reason: None,
        op: None,
        op_result: None,
        op_layer: None,
        instead_of: Vec::new(),
        chosen: None,
        alternative: None,
        text: String::new(),
    };
    let t = &mut out.text;
    match &f.verdict {
        Verdict::Split {
            class: c,
            layers,
            chosen,
            whole,
        } => {
            let option = &compiled.choice().options[c.index()];
            out.verdict = "split";
            out.class = Some(c.to_string());
            let (all, shown) = ranges(option);
            out.ranges = all;
            let _ = write!(t, "split by {}, {shown}", class(compiled, *c));
            if let Some(at) = option
                .leaves
                .iter()
                .position(|l| l == leaf)
                .filter(|_| option.leaves.len() > 1)
            {
                let part = if at == 0 { "major" } else { "minor" };
                let _ = write!(t, " of the chain that it is the {part} part of");
            }
            let _ = write!(t, "; {}", chosen_granule(option));
            out.chosen = Some(chosen.into());
            out.alternative = whole.as_ref().map(Into::into);
            if let Some(whole) = whole {
                let but = compared(chosen, whole);
                let _ = write!(
                    t,
                    "; to leave it whole {but}, {}:\n      as planned  {}\n      whole       {}",
                    words::layers(layers),
                    words::cost(chosen),
                    words::cost(whole)
                );
            }
        }
        Verdict::Elsewhere => {
            out.verdict = "elsewhere";
            let _ = write!(t, "whole: the tensor is at one place");
        }
        Verdict::OneDevice => {
            out.verdict = "one device";
            let _ = write!(
                t,
                "whole: there is one device; {}",
                words::granule(granules)
            );
        }
        Verdict::Forbidden(why) => {
            out.verdict = "forbidden";
            let reason = words::forbidden(graph, &f.facts, why);
            let _ = write!(t, "whole: {reason}");
            out.reason = Some(reason);
            if let Refusal::Whole(i) | Refusal::Indexed(i) = why.reason {
                let data = graph.inst(i);
                out.op = Some(data.op.name());
                out.op_result = data.results.first().map(|&v| words::name(graph, v));
                out.op_layer = data.layer;
            }
        }
        Verdict::Contradiction { option } => {
            out.verdict = "contradiction";
            let (all, shown) = ranges(option);
            out.ranges = all;
            let _ = write!(
                t,
                "whole: {shown} would be possible by size, but no set of splits with it can be carried out"
            );
        }
        Verdict::Possible {
            option,
            instead_of,
            layers,
            chosen,
            alternative,
        } => {
            out.verdict = "possible";
            let (all, shown) = ranges(option);
            out.ranges = all;
            out.instead_of = instead_of.iter().map(ToString::to_string).collect();
            out.chosen = Some(chosen.into());
            out.alternative = Some(alternative.into());
            let but = compared(chosen, alternative);
            let clashes: Vec<String> = instead_of
                .iter()
                .take(3)
                .map(|&c| class(compiled, c))
                .collect();
            let clashes = match instead_of.len() {
                0 => String::new(),
                n if n > clashes.len() => {
                    format!(
                        " instead of {} and {} more classes",
                        clashes.join(", "),
                        n - clashes.len()
                    )
                }
                _ => format!(" instead of {}", clashes.join(" and ")),
            };
            let _ = write!(
                t,
                "whole: it could be split, {shown}{clashes}; {}; that {but}, {}:\n      as planned  {}\n      split       {}",
                chosen_granule(option),
                words::layers(layers),
                words::cost(chosen),
                words::cost(alternative)
            );
        }
    }
    out
}

/// What an alternative costs against what was chosen.
fn compared(chosen: &Cost, alternative: &Cost) -> &'static str {
    let loss = alternative.price_us - chosen.price_us;
    if loss.abs() <= 1e-9 * chosen.price_us.abs() {
        "costs the same"
    } else if loss > 0.0 {
        "costs more"
    } else {
        "costs less, which the search did not find"
    }
}

/// Where the ranges of an option end.
fn chosen_granule(o: &SplitOption) -> String {
    if o.shares_blocks {
        return "ranges may end inside quantisation blocks, which both devices then hold"
            .to_owned();
    }
    match o.granule {
        1 => "ranges may end anywhere".to_owned(),
        n => format!("ranges end at multiples of {n}"),
    }
}

/// The explanations as text.
pub(super) fn render(all: &[WhyReport], width: u16) -> String {
    let mut out = String::new();
    for w in all {
        let size = |s: &Size| match s {
            Size::Number(n) => n.to_string(),
            Size::Symbolic(s) => format!("[{s}]"),
        };
        let shape: Vec<String> = w.ne.iter().map(size).collect();
        let _ = writeln!(
            out,
            "\nwhy {} ({} {}): {}",
            w.tensor,
            w.dtype,
            shape.join("×"),
            w.headline
        );
        if w.layers.len() > 1 {
            let _ = writeln!(out, "  the same in layers {}", span(&w.layers));
        }
        for (a, factors) in w.axes.iter().enumerate().filter(|(_, f)| !f.is_empty()) {
            let _ = writeln!(out, "  axis {a} = {factors}");
        }
        for f in &w.factors {
            let kind = f.kind.map_or_else(String::new, |k| format!(" ({k})"));
            let text = format!(
                "  {}: {}{kind}, {}\n      {}",
                f.factor,
                size(&f.size),
                f.text,
                through(&f.through, w)
            );
            out.push_str(&words::wrapped(&text, width.into(), 6));
        }
    }
    out
}

/// The other tensors that a factor runs through: those of the same layer, and how many there are elsewhere.
fn through(all: &[ThroughReport], of: &WhyReport) -> String {
    const SHOWN: usize = 8;
    let others: Vec<&ThroughReport> = all.iter().filter(|t| t.tensor != of.tensor).collect();
    if others.is_empty() {
        return "in no other weight or state".to_owned();
    }
    // The nearest first: tensors of the same layer have the same words before the last ones of their names.
    let head = of
        .tensor
        .strip_suffix(&kinds::suffix(&of.tensor))
        .unwrap_or_default();
    let (near, far): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|t| t.tensor.starts_with(head));
    let shown: Vec<String> = near
        .iter()
        .chain(&far)
        .take(SHOWN)
        .map(|t| format!("{} {}", t.tensor, t.text))
        .collect();
    let more = near.len() + far.len() - shown.len();
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    format!("also in {}{more}", shown.join(", "))
}
