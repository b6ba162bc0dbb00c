//! Finds the first op whose value differs between two captured graphs.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ggml::capture::{CaptureError, Record, Role, read_fixed};
use tpc_ggml::op::GgmlOp;
use tpc_runtime::knows;

use super::classes::Class;
use super::content::Contents;
use super::judge::{Agreement, First, Judge, Kind};
use super::pairs::Pairs;
use super::reduce::{LeafFacts, Part, SizeLimits, part};
use super::report::{
    Bisection, Counts, FirstDifference, InputOf, OpOf, Relation, StructureDifference,
};
use super::run::{Memory, run};
use super::structure::changes;

/// The largest error (NMSE) of values that agree. Both runs have 64 bits, so sums in another order differ by about
/// 1e-30. A changed epsilon of 1e-8 differs by 1e-14.
pub const BISECT_TOLERANCE: f64 = 1e-15;

/// The largest part of a graph that runs.
const LIMITS: SizeLimits = SizeLimits {
    bytes: 192 << 20,
    products: 1 << 29,
};

/// The reason that two graphs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    /// A graph is inconsistent. The number is 0 for the first graph, 1 for the second.
    #[error("{1}")]
    Capture(usize, CaptureError),
    /// The ops with differences cannot run.
    #[error("{0}")]
    Run(String),
}

/// Compares two graphs. Values agree if their error (NMSE) is at most `tolerance`.
///
/// # Errors
/// Returns an error if a graph is inconsistent, or if the ops whose structure differs cannot run.
pub fn bisect(a: &[Record], b: &[Record], tolerance: f64) -> Result<Bisection, BisectError> {
    let records = [a, b];
    let mut graphs = Vec::new();
    for (side, records) in records.iter().enumerate() {
        let captured = read_fixed(records, "graph").map_err(|e| BisectError::Capture(side, e))?;
        graphs.push(captured);
    }
    let pairs = Pairs::find(records);
    let results = [0, 1].map(|side| {
        let named = graphs[side].results.iter().copied();
        let mut all: BTreeSet<usize> = named.collect();
        all.extend(last_writes(records[side]));
        all.into_iter().collect()
    });
    let mut facts = LeafFacts::default();
    for leaf in &graphs[0].leaves {
        let class = pairs.numbered[0].value[leaf.record];
        facts.types.insert(class, a[leaf.record].dtype);
    }
    for (side, graph) in graphs.iter().enumerate() {
        for leaf in graph.leaves.iter().filter(|l| l.role == Role::Weight) {
            facts
                .weights
                .insert(pairs.numbered[side].value[leaf.record]);
        }
    }
    let (parts, memory) = values(records, &pairs, &facts)?;
    let judge = Judge::new(records, &pairs, memory, results, tolerance);
    Ok(report(&judge, &parts))
}

/// Returns the last op that writes to each leaf's memory.
fn last_writes(records: &[Record]) -> Vec<usize> {
    let mut out = BTreeMap::new();
    for (i, t) in records.iter().enumerate() {
        if t.writes() && !t.is_empty() && records[t.root].is_leaf() {
            out.insert(t.root, i);
        }
    }
    out.into_values().collect()
}

/// Runs the ops whose values are not equal by structure.
fn values(
    records: [&[Record]; 2],
    pairs: &Pairs,
    facts: &LeafFacts,
) -> Result<([Part; 2], [Memory; 2]), BisectError> {
    let known = [0, 1].map(|side| -> BTreeSet<Class> {
        let numbered = &pairs.numbered[side];
        numbered.value.iter().copied().collect()
    });
    let parts = [0, 1].map(|side| {
        let numbered = &pairs.numbered[side];
        let is_open = |&i: &usize| {
            let t = &records[side][i];
            let computes = !t.is_leaf() && !t.is_pure_view() && !t.is_empty();
            computes && !known[1 - side].contains(&numbered.value[i])
        };
        let ops: BTreeSet<usize> = (0..records[side].len()).filter(is_open).collect();
        part(records[side], numbered, &ops, facts, LIMITS)
    });
    let mut contents = Contents::default();
    for (side, records) in records.iter().enumerate() {
        contents.made_by(records, &pairs.numbered[side].memory);
    }
    for part in &parts {
        contents.read_by(&part.records);
    }
    let memory = match parts.iter().all(|p| p.records.is_empty()) {
        true => Default::default(),
        false => run(parts.each_ref(), &contents).map_err(|e| BisectError::Run(e.to_string()))?,
    };
    Ok((parts, memory))
}

fn report(judge: &Judge<'_>, parts: &[Part; 2]) -> Bisection {
    let (results, alone) = judge.results();
    let distances = results.iter().filter_map(|(.., a)| a.distance());
    let largest = distances.map(|d| d.nmse).reduce(f64::max);
    let mut counts = counts(judge);
    counts.results = results.len();
    let of = |unknown: bool| {
        let open = results.iter().filter(|(.., a)| !a.agrees());
        open.filter(|(.., a)| (*a == Agreement::Unknown) == unknown)
            .count()
    };
    counts.results_differ = of(false) + alone.len();
    counts.results_unknown = of(true);
    counts.left_out = parts.iter().map(|p| p.left_out).sum();
    Bisection {
        first: judge.first().map(|first| difference(judge, first)),
        structure: structure(judge),
        counts,
        results_nmse: largest,
        stand_ins: stand_ins(parts),
    }
}

fn counts(judge: &Judge<'_>) -> Counts {
    let mut out = Counts::default();
    let is_op = |t: &Record| !t.is_leaf();
    for (j, agreement) in judge.agreements().iter().enumerate() {
        if !is_op(&judge.records[1][j]) {
            continue;
        }
        let count = match agreement {
            Some(Agreement::ByStructure) => &mut out.equal,
            Some(Agreement::ByValue(_)) => &mut out.agree,
            Some(Agreement::Differ(_)) => &mut out.differ,
            Some(Agreement::Unknown) => &mut out.unknown,
            None => &mut out.only_b,
        };
        *count += 1;
    }
    let first = judge.records[0].iter().zip(&judge.pairs.of[0]);
    out.only_a = first.filter(|(t, pair)| is_op(t) && pair.is_none()).count();
    out
}

fn difference(judge: &Judge<'_>, first: First) -> FirstDifference {
    let [a, b] = first.op;
    let of = |side: usize, i: Option<usize>| i.map(|i| OpOf::of(&judge.records[side][i]));
    let distance = first
        .pair
        .and_then(|(_, j)| judge.agreements()[j]?.distance());
    let both = a.zip(b);
    FirstDifference {
        relation: match first.kind {
            Kind::Changed => Relation::Changed,
            Kind::Missing => Relation::Missing,
            Kind::Added => Relation::Added,
        },
        a: of(0, a),
        b: of(1, b),
        nmse: distance.map(|d| d.nmse),
        max_abs: distance.map(|d| d.max_abs),
        reader: match first.pair {
            Some((i, j)) if both != Some((i, j)) => of(1, Some(j)),
            _ => None,
        },
        changes: both.map_or_else(Vec::new, |(i, j)| changes(judge.records, judge.pairs, i, j)),
        inputs: inputs(judge, first.op),
    }
}

fn inputs(judge: &Judge<'_>, op: [Option<usize>; 2]) -> Vec<InputOf> {
    let sources = |side: usize| op[side].map_or(0, |i| judge.records[side][i].src.len());
    let mut out = Vec::new();
    for source in 0..sources(0).max(sources(1)) {
        let reading = |side: usize| {
            let i = op[side]?;
            let reads = &judge.pairs.numbered[side].reads[i];
            reads.get(source).copied().flatten()
        };
        let (a, b) = (reading(0), reading(1));
        if a.is_none() && b.is_none() {
            continue;
        }
        let agreement = a.zip(b).map(|(a, b)| judge.readings(a, b));
        let agreement = agreement.filter(|a| *a != Agreement::Unknown);
        out.push(InputOf {
            source,
            a: a.map(|r| OpOf::of(&judge.records[0][r.record])),
            b: b.map(|r| OpOf::of(&judge.records[1][r.record])),
            agrees: agreement.map(Agreement::agrees),
            nmse: agreement.and_then(Agreement::distance).map(|d| d.nmse),
        });
    }
    out
}

/// Returns the ops with another structure, in the order of the second graph; ops of the first graph only at the end.
fn structure(judge: &Judge<'_>) -> Vec<StructureDifference> {
    let mut out = Vec::new();
    for (j, t) in judge.records[1].iter().enumerate() {
        let Some(i) = judge.pairs.of[1][j] else {
            if !t.is_leaf() {
                out.push(StructureDifference {
                    a: None,
                    b: Some(OpOf::of(t)),
                    changes: Vec::new(),
                    agrees: None,
                });
            }
            continue;
        };
        let changes = changes(judge.records, judge.pairs, i, j);
        if changes.is_empty() {
            continue;
        }
        let agreement = judge.agreements()[j].filter(|a| *a != Agreement::Unknown);
        out.push(StructureDifference {
            a: Some(OpOf::of(&judge.records[0][i])),
            b: Some(OpOf::of(t)),
            changes,
            agrees: agreement.map(Agreement::agrees),
        });
    }
    for (i, t) in judge.records[0].iter().enumerate() {
        if judge.pairs.of[0][i].is_none() && !t.is_leaf() {
            out.push(StructureDifference {
                a: Some(OpOf::of(t)),
                b: None,
                changes: Vec::new(),
                agrees: None,
            });
        }
    }
    out
}

/// Returns the ops of the parts that the runtime does not know.
fn stand_ins(parts: &[Part; 2]) -> Vec<String> {
    let all = parts.iter().flat_map(|p| &p.records);
    let unknown = all.filter(|t| matches!(t.op, GgmlOp::Unknown(_)));
    let names = unknown.map(|t| t.op.name().to_lowercase());
    let unknown: BTreeSet<String> = names.filter(|n| !knows(n)).collect();
    unknown.into_iter().collect()
}
