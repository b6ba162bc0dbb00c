//! Sizes of the batch become symbols again.
//!
//! A capture has numbers: 8 tokens look like 8 heads. What tells them apart is where they come from. Factor inference
//! runs once over the graph of numbers, so that every axis that counts tokens is known by its factor, whatever it is
//! merged with: the factor of the indices that look up embeddings and write the cache is the number of tokens; that of
//! axis 0 of the masks the number of cells; that of indices into activations the number of outputs. The sizes of all
//! values follow, and with them the attributes that are sizes.
//!
//! Two caches of one length are told apart but not named apart: which of them has a window is in the content of its
//! mask, not in the graph. The first one met is then the full one.
//!
//! The result must satisfy the verifier, and no factor may be cut; where some symbols break that, fewer are tried, down
//! to none. A size that stays a number is sound too, since only what weights and states have is ever split, and what
//! an index counts along stays whole.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::factor::Var;
use tpc_ir::verify::verify;
use tpc_ir::{Dim, Graph, Op, Symbol, Value};
use tpc_passes::factors::Factors;

use super::error::CaptureError;
use super::rebuild::{Changes, rebuild};
use super::{codes, misfit};
use tpc_diag::Diagnostic;

/// What a factor counts: a symbol, or a multiple of one.
#[derive(Clone, Copy, Debug)]
struct Named {
    symbol: Symbol,
    times: u64,
}

impl Named {
    fn dim(self) -> Option<Dim> {
        Dim::symbol(self.symbol).checked_mul(&Dim::constant(self.times))
    }
}

/// The factors of the batch.
type Symbols = BTreeMap<Var, Named>;

/// A graph with symbols.
pub(super) struct Symbolic {
    pub(super) graph: Graph,
    /// What each symbol was in the capture.
    pub(super) batch: Vec<(Symbol, u64)>,
    /// Says so where sizes of the batch stay numbers.
    pub(super) note: Option<Diagnostic>,
}

/// Makes the sizes of the batch symbols.
pub(super) fn introduce(graph: &Graph) -> Result<Symbolic, CaptureError> {
    verify(graph).map_err(|e| misfit(&e[0]))?;
    let factors = Factors::infer(graph);
    let all = find(graph, &factors);
    let inputs = disguised(graph, &factors, &all);
    let mut why = None;
    for kept in [
        &[
            Symbol::NTokens,
            Symbol::NOutputs,
            Symbol::NCtx,
            Symbol::NCtxSwa,
            Symbol::NKv,
            Symbol::NKvSwa,
        ][..],
        &[Symbol::NTokens, Symbol::NOutputs],
        &[Symbol::NCtx, Symbol::NCtxSwa, Symbol::NKv, Symbol::NKvSwa],
        &[],
    ] {
        let some: Symbols = all
            .iter()
            .filter(|(_, s)| kept.contains(&s.symbol))
            .map(|(&v, &s)| (v, s))
            .collect();
        let dims = |v: Value| {
            let axes = &factors.axes[v.index()];
            std::array::from_fn(|i| {
                let named = |var: Var| some.get(&var).and_then(|s| s.dim());
                let size = factors.space.resized(axes[i], &named);
                size.unwrap_or_else(|| graph.value(v).ty.dims[i].clone())
            })
        };
        let changes = Changes {
            dims: &dims,
            layers: &[],
            inputs: &inputs,
        };
        let made = rebuild(graph, &changes);
        let sound = sound(&made);
        match sound {
            Err(e) if !kept.is_empty() => why = why.or(Some(e)),
            _ => {
                let mut batch: Vec<(Symbol, u64)> = some
                    .iter()
                    .filter(|(_, s)| s.times == 1)
                    .map(|(&v, s)| (s.symbol, factors.space.size(v).as_const().unwrap_or(1)))
                    .collect();
                batch.sort_unstable();
                batch.dedup();
                let note = why.or_else(|| all.is_empty().then(|| "none was found".to_owned()));
                return Ok(Symbolic {
                    graph: made,
                    batch,
                    note: note.map(|w| fixed(graph, &w)),
                });
            }
        }
    }
    Err(CaptureError::Misfit("no sizes hold".to_owned()))
}

/// Whether the sizes of a graph fit together, and what is against it.
fn sound(graph: &Graph) -> Result<(), String> {
    verify(graph).map_err(|e| e[0].to_string())?;
    for (_, data) in graph.insts() {
        let v = graph.value(data.results[0]);
        let is_weight = matches!(data.op, Op::Weight(_));
        if is_weight && v.ty.dims.iter().any(|d| d.as_const().is_none()) {
            return Err(format!("the weight {} would be {}", v.name, v.ty));
        }
    }
    let cut = Factors::infer(graph).opaque.into_iter().next();
    cut.map_or(Ok(()), |(inst, c)| Err(format!("{inst}: {c}")))
}

fn fixed(graph: &Graph, why: &str) -> Diagnostic {
    let message = format!("sizes of the batch stay as they are in the capture ({why})");
    Diagnostic::new(&codes::FIXED_BATCH, &graph.name, message)
        .help("capture with batch sizes that no dimension of the model has")
}

/// The value behind layout ops and slices.
fn behind(graph: &Graph, mut v: Value) -> Value {
    loop {
        let data = graph.inst(graph.value(v).def.0);
        if !data.op.is_view() {
            return v;
        }
        v = data.operands[0];
    }
}

fn is_input(graph: &Graph, v: Value) -> bool {
    matches!(graph.def_op(behind(graph, v)), Op::Input(_))
}

/// The factors of the batch.
fn find(graph: &Graph, factors: &Factors) -> Symbols {
    let var = |v: Value, axis: usize| factors.space.find(factors.axes[v.index()][axis]);
    let (mut tokens, mut outputs, mut cells, mut masks) = (vec![], vec![], vec![], vec![]);
    let mut positions = vec![];
    for (_, data) in graph.insts() {
        let o = &data.operands;
        match &data.op {
            Op::GetRows(_) if matches!(graph.def_op(o[1]), Op::Input(_)) => {
                match graph.def_op(behind(graph, o[0])) {
                    Op::Weight(_) => tokens.push(var(o[1], 0)),
                    Op::State(_) | Op::SetSlice(_) => {}
                    _ => outputs.push(var(o[1], 0)),
                }
            }
            Op::SetRows(s) if is_input(graph, o[2]) => {
                tokens.push(var(o[2], 0));
                let axis = usize::try_from(s.axis).unwrap_or(0).min(3);
                cells.push(var(o[0], axis));
            }
            Op::Rope(r) => {
                tokens.push(var(o[0], 2));
                if r.mode.positions() > 1 {
                    positions.push((var(o[0], 2), var(o[1], 0), r.mode.positions()));
                }
            }
            Op::FlashAttn(_) if is_input(graph, o[3]) => masks.push(var(o[3], 0)),
            Op::SoftMax(_) if o.len() == 2 && is_input(graph, o[1]) => masks.push(var(o[1], 0)),
            _ => {}
        }
    }
    let mut out = Symbols::new();
    let mut add = |v: Var, symbol: Symbol, times: u64| {
        if !factors.space.size(v).is_one() {
            out.entry(v).or_insert(Named { symbol, times });
        }
    };
    // The most frequent: a graph may rotate something else than tokens.
    let mut counts: BTreeMap<Var, usize> = BTreeMap::new();
    for &v in &tokens {
        *counts.entry(v).or_default() += 1;
    }
    if let Some((&v, _)) = counts
        .iter()
        .max_by_key(|(v, n)| (**n, std::cmp::Reverse(**v)))
    {
        add(v, Symbol::NTokens, 1);
        // A convolution over steps before the batch and those of the batch makes as many as the batch has.
        for (_, data) in graph.insts() {
            let Op::SsmConv(_) = data.op else { continue };
            let steps = graph.inst(graph.value(data.operands[0]).def.0);
            let last = steps
                .operands
                .last()
                .filter(|_| matches!(steps.op, Op::Concat(_)));
            if last.is_some_and(|&x| var(x, 0) == v) {
                add(var(data.results[0], 1), Symbol::NTokens, 1);
            }
        }
        // Several positions per token are no factor of anything else.
        for (of, positions, times) in positions {
            if of == v {
                add(positions, Symbol::NTokens, times);
            }
        }
    }
    if let Some(&v) = outputs.first() {
        add(v, Symbol::NOutputs, 1);
    }
    // Of two kinds of caches the shorter has the window; what attends to a whole cache attends to its context.
    let mut seen = BTreeSet::new();
    masks.retain(|v| seen.insert(*v));
    let size = |v: &Var| factors.space.size(*v).as_const().unwrap_or(0);
    masks.sort_by_key(|v| std::cmp::Reverse(size(v)));
    let kinds = [
        (Symbol::NCtx, Symbol::NKv),
        (Symbol::NCtxSwa, Symbol::NKvSwa),
    ];
    for (mask, (context, used)) in masks.iter().zip(kinds) {
        add(*mask, if cells.contains(mask) { context } else { used }, 1);
    }
    // A cache that is attended to in part has its mask's cells among its own; one that is not attended to is known by
    // its size alone.
    let has = |cache: Var, mask: Var| {
        let mut leaves = Vec::new();
        factors.space.leaves(cache, &mut leaves);
        leaves.contains(&mask)
    };
    cells.retain(|v| !masks.contains(v));
    let sizes: BTreeSet<u64> = cells.iter().map(size).collect();
    for cache in cells {
        let by_mask = masks.iter().position(|&m| has(cache, m));
        let by_size = || sizes.iter().rev().position(|&n| n == size(&cache));
        if let Some((context, _)) = by_mask.or_else(by_size).and_then(|i| kinds.get(i)) {
            add(cache, *context, 1);
        }
    }
    out
}

/// Weights with an axis that counts something of the batch, or a multiple: inputs that are not marked as such.
fn disguised(graph: &Graph, factors: &Factors, symbols: &Symbols) -> BTreeSet<Value> {
    let named = |var: Var| symbols.get(&var).and_then(|s| s.dim());
    let counts = |var: Var| {
        let size = factors.space.resized(var, &named);
        let multiple = |d: &Dim| {
            let mut symbols = symbols.values().map(|s| Dim::symbol(s.symbol));
            symbols.any(|s| d.checked_div(&s).is_some_and(|n| n.as_const().is_some()))
        };
        size.is_some_and(|d| multiple(&d))
    };
    let weights = graph.insts().filter(|(_, d)| matches!(d.op, Op::Weight(_)));
    weights
        .map(|(_, d)| d.results[0])
        .filter(|v| factors.axes[v.index()].iter().any(|&a| counts(a)))
        .collect()
}
