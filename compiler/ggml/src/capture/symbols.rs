//! Turns batch sizes into symbols.
//!
//! In a capture, 8 tokens look like 8 heads. Factor inference finds every axis that counts tokens, even if it is
//! merged with other axes:
//!
//! - tokens are the factor of the indices that look up embeddings and write the cache;
//! - cells are the factor of axis 0 of the masks;
//! - outputs are the factor of indices into the tokens' activations, at most the number of tokens.
//!
//! Two caches of equal length are two factors, but only the mask's content shows which cache has a window. tpc
//! assumes that the first cache has the whole context.
//!
//! The result must pass the verifier, have the sizes of each captured graph (`samples`), and split no factor;
//! otherwise tpc tries fewer symbols, down to none. A fixed size is also sound: only axes of weights and states are
//! ever split, and axes that indices count stay whole.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::factor::Var;
use tpc_ir::verify::verify;
use tpc_ir::{Bindings, Dim, Graph, InstData, Op, Symbol, Value};
use tpc_passes::factors::Factors;

use super::codes;
use super::error::CaptureError;
use super::rebuild::{Changes, rebuild};
use super::samples::{Samples, Sizes};
use tpc_diag::Diagnostic;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    symbol: Symbol,
    times: u64,
}

impl Size {
    fn dim(self) -> Option<Dim> {
        Dim::symbol(self.symbol).checked_mul(&Dim::constant(self.times))
    }
}

type Symbols = BTreeMap<Var, Size>;

const ATTEMPTS: [&[Symbol]; 6] = [
    &[
        Symbol::NTokens,
        Symbol::NOutputs,
        Symbol::NCtx,
        Symbol::NCtxSwa,
        Symbol::NKv,
        Symbol::NKvSwa,
    ],
    &[
        Symbol::NTokens,
        Symbol::NCtx,
        Symbol::NCtxSwa,
        Symbol::NKv,
        Symbol::NKvSwa,
    ],
    &[Symbol::NTokens, Symbol::NOutputs],
    &[Symbol::NTokens],
    &[Symbol::NCtx, Symbol::NCtxSwa, Symbol::NKv, Symbol::NKvSwa],
    &[],
];

pub(super) struct Symbolic {
    pub(super) graph: Graph,
    pub(super) batch: Vec<(Symbol, u64)>,
    /// A note if batch sizes stay numbers.
    pub(super) note: Option<Diagnostic>,
}

pub(super) fn introduce(graph: &Graph, samples: &Samples) -> Result<Symbolic, CaptureError> {
    verify(graph).map_err(|e| CaptureError::inconsistent(&e[0]))?;
    let factors = Factors::infer(graph);
    let known = samples.factors(graph, &factors);
    let all = find(graph, &factors, &known);
    let inputs = unmarked_inputs(graph, &factors, &all);
    let mut why = None;
    let mut tried: Option<Symbols> = None;
    for kept in ATTEMPTS {
        let some: Symbols = all
            .iter()
            .filter(|(_, s)| kept.contains(&s.symbol))
            .map(|(&v, &s)| (v, s))
            .collect();
        if tried.as_ref() == Some(&some) {
            continue;
        }
        let symbolic = with_symbols(graph, &factors, &some, &inputs);
        // The graph without symbols equals the capture.
        let checked = match some.is_empty() {
            true => Ok(()),
            false => check(&symbolic)
                .and_then(|()| any_batch(&symbolic, &batch(&factors, &some)))
                .and_then(|()| samples.check(&symbolic, &of_symbols(&some, &known))),
        };
        match checked {
            Err(e) => {
                why = why.or(Some(e));
                tried = Some(some);
            }
            Ok(()) => {
                let note = why.or_else(|| all.is_empty().then(|| "no symbol was found".to_owned()));
                return Ok(Symbolic {
                    graph: symbolic,
                    batch: batch(&factors, &some),
                    note: note.map(|w| fixed_batch(graph, &w)),
                });
            }
        }
    }
    Err(CaptureError::Inconsistent(
        "the verifier rejects all symbols".to_owned(),
    ))
}

/// Replaces sizes with `symbols`, and turns the given weights into inputs.
fn with_symbols(
    graph: &Graph,
    factors: &Factors,
    symbols: &Symbols,
    inputs: &BTreeSet<Value>,
) -> Graph {
    let dims = |v: Value| {
        let axes = &factors.axes[v.index()];
        std::array::from_fn(|i| {
            let named = |var: Var| symbols.get(&var).and_then(|s| s.dim());
            let size = factors.space.resize(axes[i], &named);
            size.unwrap_or_else(|| graph.value(v).ty.dims[i].clone())
        })
    };
    let changes = Changes {
        dims: &dims,
        layers: &[],
        inputs,
    };
    rebuild(graph, &changes)
}

fn batch(factors: &Factors, symbols: &Symbols) -> Vec<(Symbol, u64)> {
    let mut batch: Vec<(Symbol, u64)> = symbols
        .iter()
        .filter(|(_, s)| s.times == 1)
        .map(|(&v, s)| (s.symbol, factors.space.size(v).as_const().unwrap_or(1)))
        .collect();
    batch.sort_unstable();
    batch.dedup();
    batch
}

fn of_symbols(symbols: &Symbols, known: &BTreeMap<Var, Sizes>) -> BTreeMap<Symbol, Sizes> {
    let own = symbols.iter().filter(|(_, s)| s.times == 1);
    own.filter_map(|(v, s)| Some((s.symbol, known.get(v)?.clone())))
        .collect()
}

/// Checks that the sizes are consistent, and that no weight depends on the batch.
fn check(graph: &Graph) -> Result<(), String> {
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

/// Checks that sizes are valid and slices stay within axes, for the captured batch and for one token. This finds
/// numbers that were mistaken for batch sizes.
fn any_batch(graph: &Graph, batch: &[(Symbol, u64)]) -> Result<(), String> {
    let mut captured = Bindings::default();
    for &(symbol, n) in batch {
        captured = captured.with(symbol, n);
    }
    let single = captured.with(Symbol::NTokens, 1).with(Symbol::NOutputs, 1);
    for bindings in [captured, single] {
        for (_, data) in graph.insts() {
            let name = &graph.value(data.results[0]).name;
            let is_size = |d: &Dim| match d.eval(&bindings) {
                Some(n) => Ok(n),
                None => Err(format!("{name} would have a negative size: {d}")),
            };
            for v in &data.results {
                for d in &graph.value(*v).ty.dims {
                    is_size(d)?;
                }
            }
            let (start, len, axis) = match &data.op {
                Op::Slice(s) => (&s.start, &s.len, s.axis),
                Op::SetSlice(s) => {
                    let axis = usize::try_from(s.axis).unwrap_or(0).min(3);
                    (
                        &s.start,
                        &graph.value(data.operands[1]).ty.dims[axis],
                        s.axis,
                    )
                }
                _ => continue,
            };
            let axis = usize::try_from(axis).unwrap_or(0).min(3);
            let whole = is_size(&graph.value(data.operands[0]).ty.dims[axis])?;
            let end = start
                .eval(&bindings)
                .map(|at| at.saturating_add(len.eval(&bindings).unwrap_or(u64::MAX)));
            if end.is_none_or(|end| end > whole) {
                return Err(format!(
                    "{name} would be {len} of {whole} indices, from {start} on"
                ));
            }
        }
    }
    Ok(())
}

fn fixed_batch(graph: &Graph, why: &str) -> Diagnostic {
    let message = format!("batch sizes stay fixed as captured ({why})");
    Diagnostic::new(&codes::FIXED_BATCH, &graph.name, message)
        .help("capture with batch sizes that differ from all dimensions of the model")
}

/// Returns the source of a chain of layout ops and slices.
fn source_of_layout(graph: &Graph, mut v: Value) -> Value {
    loop {
        let data = graph.inst(graph.value(v).def.0);
        if !data.op.is_view() {
            return v;
        }
        v = data.operands[0];
    }
}

fn is_input(graph: &Graph, v: Value) -> bool {
    matches!(graph.def_op(source_of_layout(graph, v)), Op::Input(_))
}

/// A factor that counts positions: `times` positions per token.
struct Positions {
    tokens: Var,
    positions: Var,
    times: u64,
}

/// The activation rows that an input selects.
struct Outputs {
    /// The factor of all rows.
    rows: Var,
    /// The factor of selected rows.
    selected: Var,
}

/// Factors that ops identify as batch sizes. A list has a factor once per op.
#[derive(Default)]
struct Evidence {
    tokens: Vec<Var>,
    /// Rows that ops look up in weights.
    lookups: Vec<Var>,
    outputs: Vec<Outputs>,
    /// Rows that ops write to caches.
    cells: Vec<Var>,
    /// Axis 0 of masks.
    masks: Vec<Var>,
    positions: Vec<Positions>,
}

impl Evidence {
    fn collect(graph: &Graph, factors: &Factors) -> Evidence {
        let mut out = Evidence::default();
        for (_, data) in graph.insts() {
            out.add(graph, factors, data);
        }
        out
    }

    fn add(&mut self, graph: &Graph, factors: &Factors, data: &InstData) {
        let var = |v: Value, axis: usize| factor(factors, v, axis);
        let o = &data.operands;
        match &data.op {
            Op::GetRows(_) if matches!(graph.def_op(o[1]), Op::Input(_)) => {
                match graph.def_op(source_of_layout(graph, o[0])) {
                    Op::Weight(_) => {
                        self.tokens.push(var(o[1], 0));
                        self.lookups.push(var(o[1], 0));
                    }
                    Op::State(_) | Op::SetSlice(_) => {}
                    _ => self.outputs.push(Outputs {
                        rows: var(o[0], 1),
                        selected: var(o[1], 0),
                    }),
                }
            }
            Op::SetRows(s) if is_input(graph, o[2]) => {
                self.tokens.push(var(o[2], 0));
                let axis = usize::try_from(s.axis).unwrap_or(0).min(3);
                self.cells.push(var(o[0], axis));
            }
            Op::Rope(r) => {
                let tokens = var(o[0], 2);
                self.tokens.push(tokens);
                if r.mode.positions() > 1 {
                    self.positions.push(Positions {
                        tokens,
                        positions: var(o[1], 0),
                        times: r.mode.positions(),
                    });
                }
            }
            Op::FlashAttn(_) if is_input(graph, o[3]) => self.masks.push(var(o[3], 0)),
            Op::SoftMax(_) if o.len() > 1 && is_input(graph, o[1]) => {
                self.masks.push(var(o[1], 0));
            }
            _ => {}
        }
    }

    /// Returns the most frequent token factor, because a graph may rotate rows other than tokens. With several
    /// embeddings, factors of size 1 are ignored: recurrent layers write states with an index of one row.
    fn most_tokens(&self, factors: &Factors) -> Option<Var> {
        let several = |v: &Var| !factors.space.size(*v).is_one();
        let batch = self.lookups.iter().any(several);
        let mut counts: BTreeMap<Var, usize> = BTreeMap::new();
        for &v in self.tokens.iter().filter(|v| !batch || several(v)) {
            *counts.entry(v).or_default() += 1;
        }
        let most = counts.iter().max_by_key(|(v, n)| (**n, Reverse(**v)));
        most.map(|(&v, _)| v)
    }
}

fn factor(factors: &Factors, v: Value, axis: usize) -> Var {
    factors.space.find(factors.axes[v.index()][axis])
}

fn varies(sizes: &Sizes) -> bool {
    sizes.iter().any(|n| Some(n) != sizes.first())
}

/// Finds the factors that are batch sizes, using the graph's ops and the sizes in other graphs.
fn find(graph: &Graph, factors: &Factors, known: &BTreeMap<Var, Sizes>) -> Symbols {
    let mut evidence = Evidence::collect(graph, factors);
    let differs = |v: &Var| known.get(v).is_some_and(varies);
    if evidence.tokens.iter().any(differs) {
        evidence.tokens.retain(differs);
        evidence.lookups.retain(differs);
    }
    let mut out = batch_factors(graph, factors, evidence);
    // If some token factors differ between graphs, a constant factor does not count tokens.
    let tokens = |s: &Size| matches!(s.symbol, Symbol::NTokens | Symbol::NOutputs);
    let is_one_of_several = out.iter().any(|(v, s)| tokens(s) && differs(v));
    out.retain(|v, s| !(is_one_of_several && tokens(s) && known.contains_key(v) && !differs(v)));
    let mut symbols = of_symbols(&out, known);
    // If no op shows tokens (models without positions), the smallest varying factor counts tokens.
    if !symbols.contains_key(&Symbol::NTokens)
        && let Some(least) = known.values().filter(|s| varies(s)).min()
    {
        symbols.insert(Symbol::NTokens, least.clone());
    }
    for (&v, sizes) in known.iter().filter(|(_, sizes)| varies(sizes)) {
        let multiple = |of: &Sizes| {
            let times = sizes[0].checked_div(of[0])?;
            let all = sizes
                .iter()
                .zip(of)
                .all(|(n, m)| m.checked_mul(times) == Some(*n));
            (all && times > 0).then_some(times)
        };
        let found = symbols.iter().find_map(|(&symbol, of)| {
            let times = multiple(of)?;
            Some(Size { symbol, times })
        });
        if let Some(size) = found {
            out.entry(v).or_insert(size);
        }
    }
    out
}

fn batch_factors(graph: &Graph, factors: &Factors, evidence: Evidence) -> Symbols {
    let mut out = Symbols::new();
    let mut add = |v: Var, symbol: Symbol, times: u64| {
        if !factors.space.size(v).is_one() {
            out.entry(v).or_insert(Size { symbol, times });
        }
    };
    if let Some(v) = evidence.most_tokens(factors) {
        add(v, Symbol::NTokens, 1);
        for steps in convolution_steps(graph, factors, v) {
            add(steps, Symbol::NTokens, 1);
        }
        for p in evidence.positions.iter().filter(|p| p.tokens == v) {
            add(p.positions, Symbol::NTokens, p.times);
        }
    }
    // Outputs are a subset of the tokens. Other indices into activations select other rows.
    let tokens = evidence.most_tokens(factors);
    let size = |v: Var| factors.space.size(v).as_const().unwrap_or(u64::MAX);
    // A model may have several sequences of tokens, and their product is another factor of the same size. If the
    // first selection of rows reads recurrent states, outputs stay a number.
    let of_tokens =
        |o: &&Outputs| tokens.map(size) == Some(size(o.rows)) && size(o.selected) <= size(o.rows);
    if let Some(o) = evidence.outputs.first().filter(of_tokens) {
        add(o.selected, Symbol::NOutputs, 1);
    }
    for (v, symbol) in cells(factors, evidence) {
        add(v, symbol, 1);
    }
    out
}

/// Returns the step factors of convolution results. A convolution reads earlier steps concatenated with the batch's
/// (`tokens`), and has one result per step of the batch.
fn convolution_steps(graph: &Graph, factors: &Factors, tokens: Var) -> Vec<Var> {
    let mut out = Vec::new();
    for (_, data) in graph.insts() {
        let Op::SsmConv(_) = data.op else { continue };
        let steps = graph.inst(graph.value(data.operands[0]).def.0);
        let is_concat = matches!(steps.op, Op::Concat(_));
        let last = steps.operands.last().filter(|_| is_concat);
        if last.is_some_and(|&x| factor(factors, x, 0) == tokens) {
            out.push(factor(factors, data.results[0], 1));
        }
    }
    out
}

/// Returns the cell factors. Of two cache lengths, the shorter has the window. A mask for a whole cache has all cells
/// of the context; any other mask has the cells in use.
fn cells(factors: &Factors, evidence: Evidence) -> Vec<(Var, Symbol)> {
    let Evidence {
        mut masks,
        mut cells,
        ..
    } = evidence;
    let mut seen = BTreeSet::new();
    masks.retain(|v| seen.insert(*v));
    let size = |v: &Var| factors.space.size(*v).as_const().unwrap_or(0);
    masks.sort_by_key(|v| Reverse(size(v)));
    let kinds = [
        (Symbol::NCtx, Symbol::NKv),
        (Symbol::NCtxSwa, Symbol::NKvSwa),
    ];
    let mut out = Vec::new();
    for (mask, (context, used)) in masks.iter().zip(kinds) {
        let is_whole = cells.contains(mask);
        out.push((*mask, if is_whole { context } else { used }));
    }
    // A partly used cache includes the cells of its mask. A cache without a mask is identified by its size.
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
            out.push((cache, *context));
        }
    }
    out
}

/// Returns the weights whose sizes depend on the batch: inputs that the capture does not mark.
fn unmarked_inputs(graph: &Graph, factors: &Factors, symbols: &Symbols) -> BTreeSet<Value> {
    let named = |var: Var| symbols.get(&var).and_then(|s| s.dim());
    let of_batch = |var: Var| {
        let size = factors.space.resize(var, &named);
        let multiple = |d: &Dim| {
            let mut symbols = symbols.values().map(|s| Dim::symbol(s.symbol));
            symbols.any(|s| d.checked_div(&s).is_some_and(|n| n.as_const().is_some()))
        };
        size.is_some_and(|d| multiple(&d))
    };
    let weights = graph.insts().filter(|(_, d)| matches!(d.op, Op::Weight(_)));
    weights
        .map(|(_, d)| d.results[0])
        .filter(|v| factors.axes[v.index()].iter().any(|&a| of_batch(a)))
        .collect()
}
