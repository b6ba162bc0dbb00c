//! Encodes the values of an obligation as terms of an e-graph.

use std::collections::BTreeSet;

use egg::Id;
use rustc_hash::FxHashMap;
use tpc_ir::op::{AllToAll, Arange, Concat, Copy, InferredTypes, ReduceScatter};
use tpc_ir::{Budget, Dim, Graph, Inst, InstData, Interval, Op, RANK, TensorType, Value};

use super::boundary::{Boundary, is_inlined};
use super::finite;
use super::index_set::{IndexSet, NotExpressible, Pattern, from_axes, selected_dims};
use super::knowledge::{Counterpart, ModelRef};
use super::language::Head;
use super::leaves::is_named_leaf;
use super::obligation::Obligation;
use super::refutation::{Refutation, RefutationReason};
use super::rules::RULES;
use super::rules::cells::held;
use super::term_graph::TermGraph;

pub(super) struct Encoding<'a> {
    pub(super) task: &'a Obligation<'a>,
    pub(super) terms: TermGraph,
    pub(super) model: FxHashMap<Value, Id>,
    pub(super) numbers: Vec<ModelRef>,
    pub(super) programs: FxHashMap<Value, Id>,
    pub(super) boundary: &'a Boundary,
}

impl<'a> Encoding<'a> {
    pub(super) fn new(
        task: &'a Obligation<'a>,
        boundary: &'a Boundary,
        without: Option<&str>,
        budget: &Budget,
    ) -> Result<Encoding<'a>, Box<Refutation>> {
        let mut encoding = Encoding {
            task,
            terms: TermGraph::new(RULES, without, budget),
            model: FxHashMap::default(),
            numbers: Vec::new(),
            programs: FxHashMap::default(),
            boundary,
        };
        encoding.terms.cell_parts = cell_parts(task.programs);
        let mut added = encoding.add_model();
        encoding.terms.of_model = false;
        for &inst in task.of_programs {
            if added.is_err() {
                break;
            }
            added = encoding.add_program(inst);
        }
        for (resource, n) in encoding.terms.used_resources() {
            budget.take(resource, n);
        }
        added.map(|()| encoding)
    }

    fn name(&mut self, v: Value, id: Id, what: ModelRef) {
        let number = self.numbers.len() as u32;
        self.numbers.push(what);
        let graph = &mut self.terms.graph;
        let id = graph.find(id);
        let mut fact = graph[id].data.clone();
        let is_number = fact.number || self.task.numbers[v.index()];
        if fact.model.is_none() || is_number != fact.number {
            fact.model = fact.model.or(Some(number));
            fact.number = is_number;
            graph.set_analysis_data(id, fact);
        }
        self.model.insert(v, id);
    }

    fn atom(&mut self, number: usize, ty: &TensorType) -> Id {
        let ty = self.terms.graph.analysis.tables.types.intern(ty);
        let number = number as u32;
        self.terms.add(Head::Atom { number, ty }, Vec::new())
    }

    /// Returns an outside value as an atom or as a view of an atom.
    fn external(&mut self, n: usize, classes: &mut [Option<Id>]) -> Id {
        if let Some(id) = classes[n] {
            return id;
        }
        let (task, v) = (self.task, self.boundary.values[n]);
        let data = task.model.inst(task.model.value(v).def.0);
        let of = match data.operands.as_slice() {
            &[of] if is_inlined(&data.op) => self.boundary.find(task.known.representative(of)),
            _ => None,
        };
        let ty = &task.model.value(v).ty;
        let id = match of {
            Some(of) if of != n => {
                let arg = self.external(of, classes);
                match data.op {
                    Op::Copy(_) => arg,
                    _ => self.result(data, 0, ty, vec![arg]),
                }
            }
            _ => self.atom(n, ty),
        };
        classes[n] = Some(id);
        id
    }

    /// Adds terms for outside values and for the obligation's values of the model.
    ///
    /// # Errors
    /// Returns the instruction that exceeds a limit.
    fn add_model(&mut self) -> Result<(), Box<Refutation>> {
        let (task, boundary) = (self.task, self.boundary);
        let mut classes = vec![None; boundary.values.len()];
        for n in 0..classes.len() {
            self.external(n, &mut classes);
        }
        for (n, (&v, id)) in boundary.values.iter().zip(classes).enumerate() {
            if let Some(id) = id {
                self.name(v, id, ModelRef::External(n));
            }
        }
        for (i, &inst) in task.of_model.iter().enumerate() {
            let data = task.model.inst(inst);
            let args: Vec<Id> = data.operands.iter().map(|&v| self.of_model(v)).collect();
            let ty = |k: usize| args.get(k).and_then(|&a| self.terms.ty(a));
            if let Some((domain, k)) = finite::domain(&data.op, ty)
                && let Some(&operand) = args.get(k)
            {
                let domains = &mut self.terms.graph.analysis.domains;
                domains.push((domain, operand));
            }
            for (r, &v) in data.results.iter().enumerate() {
                let leaf = task.leaves.get(&data.op);
                let id = match leaf {
                    _ if data.op == Op::Copy(Copy) => args[r],
                    Some(first) if first != v => self.of_model(first),
                    Some(_) => {
                        let number = boundary.values.len() + i;
                        self.atom(number, &task.model.value(v).ty)
                    }
                    None => self.result(data, r, &task.model.value(v).ty, args.clone()),
                };
                self.name(v, id, ModelRef::Internal(i, r));
            }
            if self.terms.cut_short {
                return Err(Refutation::at(task.model, inst, RefutationReason::Limit));
            }
        }
        Ok(())
    }

    /// Adds a result of an op; a constant becomes an atom of its type.
    fn result(&mut self, data: &InstData, result: usize, ty: &TensorType, args: Vec<Id>) -> Id {
        let result = result as u8;
        let id = self.terms.add_op(&data.op, result, args);
        if self.terms.ty(id).is_none() && data.operands.is_empty() {
            // Constants declare their type, so constants of different types differ.
            let constant = self.terms.graph.analysis.tables.ops.intern(&data.op);
            let number = u32::MAX - constant;
            let ty = self.terms.graph.analysis.tables.types.intern(ty);
            return self.terms.add(Head::Atom { number, ty }, Vec::new());
        }
        if self.terms.ty(id).is_none() && self.is_declared(&data.op, id) {
            let graph = &mut self.terms.graph;
            let id = graph.find(id);
            let mut fact = graph[id].data.clone();
            fact.ty = Some(ty.clone());
            graph.set_analysis_data(id, fact);
        }
        id
    }

    fn is_declared(&self, op: &Op, id: Id) -> bool {
        self.terms.ops_of(id).iter().any(|(_, _, args)| {
            let types: Option<Vec<&TensorType>> = args.iter().map(|&a| self.terms.ty(a)).collect();
            types.is_some_and(|t| op.infer(&t) == Ok(InferredTypes::Declared))
        })
    }

    /// Charges a scan of the obligation's instructions. Returns true if steps are left.
    pub(super) fn charge_scan(&self) -> bool {
        /// The number of instructions charged as one step.
        const EACH: usize = 16;
        self.terms.charge(1 + self.task.of_programs.len() / EACH)
    }

    pub(super) fn of_model(&self, v: Value) -> Id {
        let id = self
            .model
            .get(&self.task.known.representative(v))
            .or(self.model.get(&v));
        *id.expect(
            "invariant: outside values are in the boundary, inside values come in program order",
        )
    }

    fn of_program(&mut self, v: Value) -> Result<Id, NotExpressible> {
        if let Some(&id) = self.programs.get(&v) {
            return Ok(id);
        }
        let id = match self
            .task
            .known
            .counterpart(v)
            .ok_or(NotExpressible)?
            .clone()
        {
            Counterpart::Part { model, view } => {
                let base = self.of_model(model);
                match view {
                    Some(view) => self.terms.view(base, view.indices, view.dims),
                    None => base,
                }
            }
            Counterpart::Empty(ty) => self.terms.zero(&ty),
        };
        self.programs.insert(v, id);
        Ok(id)
    }

    fn add_program(&mut self, inst: Inst) -> Result<(), Box<Refutation>> {
        let data = self.task.programs.inst(inst);
        let fails = |what| Refutation::at(self.task.programs, inst, what);
        let mut args = Vec::new();
        for &v in &data.operands {
            let id = self.of_program(v);
            args.push(
                id.map_err(|NotExpressible| fails(RefutationReason::Operand { operand: v }))?,
            );
        }
        let results = self.encode(data, &args);
        let results = results.map_err(|NotExpressible| fails(RefutationReason::Inexpressible))?;
        for (&v, id) in data.results.iter().zip(results) {
            let declared = &self.task.programs.value(v).ty;
            if self.terms.ty(id) != Some(declared) {
                return Err(fails(RefutationReason::Type {
                    found: self.terms.ty(id).cloned(),
                }));
            }
            self.programs.insert(v, id);
        }
        if self.terms.cut_short {
            return Err(fails(RefutationReason::Limit));
        }
        Ok(())
    }

    fn encode(&mut self, data: &InstData, args: &[Id]) -> Result<Vec<Id>, NotExpressible> {
        match &data.op {
            Op::Copy(Copy) => Ok(args.to_vec()),
            Op::AllReduce(_) => {
                let sum = self.terms.sum(args.to_vec());
                Ok(vec![sum; args.len()])
            }
            Op::AllGather(op) => {
                let axis = op.axis;
                let whole = self.terms.add_op(&Concat { axis }.into(), 0, args.to_vec());
                Ok(vec![whole; args.len()])
            }
            Op::ReduceScatter(ReduceScatter { counts, .. })
            | Op::AllToAll(AllToAll { counts, .. })
                if counts.len() != args.len() =>
            {
                Err(NotExpressible)
            }
            Op::ReduceScatter(op) => {
                let sum = self.terms.sum(args.to_vec());
                self.cut(sum, axis(op.axis)?, &op.counts)
            }
            Op::AllToAll(op) => {
                let cut = axis(op.cut)?;
                let mut parts = Vec::new();
                for &a in args {
                    parts.push(self.cut(a, cut, &op.counts)?);
                }
                let join = Concat { axis: op.join };
                let joined = (0..args.len()).map(|rank| {
                    let received = parts.iter().map(|p| p[rank]).collect();
                    self.terms.add_op(&join.clone().into(), 0, received)
                });
                Ok(joined.collect())
            }
            op if is_named_leaf(op) => Ok(vec![self.leaf(op)?]),
            Op::Arange(op) if op.held.is_some() => {
                let held = op.held.as_deref().unwrap_or_default();
                Ok(vec![self.part_of_range(op, held)?])
            }
            _ => {
                let programs = self.task.programs;
                let results = data.results.iter().enumerate();
                let classes = results
                    .map(|(r, &v)| self.result(data, r, &programs.value(v).ty, args.to_vec()));
                Ok(classes.collect())
            }
        }
    }

    /// Adds a device's part of equidistant numbers, as a view of all numbers.
    fn part_of_range(&mut self, op: &Arange, held: &[Interval]) -> Result<Id, NotExpressible> {
        let all = Arange {
            held: None,
            ..op.clone()
        };
        let whole = self.terms.add_op(&all.into(), 0, Vec::new());
        let size = op.n.as_const().ok_or(NotExpressible)?;
        let pattern = Pattern::new(&Dim::ONE, size, held.iter().copied())?;
        self.terms.on_axis(whole, 0, pattern)
    }

    fn cut(&mut self, whole: Id, axis: usize, counts: &[u64]) -> Result<Vec<Id>, NotExpressible> {
        let size = counts.iter().sum();
        let mut start = 0;
        let mut out = Vec::new();
        for &len in counts {
            let pattern = Pattern::new(&Dim::ONE, size, [Interval { start, len }])?;
            out.push(self.terms.on_axis(whole, axis, pattern)?);
            start += len;
        }
        Ok(out)
    }

    fn leaf(&mut self, op: &Op) -> Result<Id, NotExpressible> {
        let whole = self.task.leaves.get(op).ok_or(NotExpressible)?;
        let mut base = self.of_model(whole);
        if let Op::State(state) = op
            && let Some(cells) = state.cells
        {
            let dims = &self.terms.ty(base).ok_or(NotExpressible)?.dims;
            let last = (0..RANK).rev().find(|&a| !dims[a].is_one());
            let axis = last.ok_or(NotExpressible)?;
            base = self.terms.on_axis(base, axis, held(cells)?)?;
        }
        let Some(parts) = op.parts() else {
            return Ok(base);
        };
        let ty = self.terms.ty(base).ok_or(NotExpressible)?.clone();
        let (indices, dims) = held_part(parts, op.row_granule(ty.dtype), &ty)?;
        Ok(self.terms.view(base, indices, dims))
    }
}

/// Returns the numbers of parts into which programs divide states by cells, in ascending order.
fn cell_parts(programs: &Graph) -> Vec<u64> {
    let of = programs.insts().filter_map(|(_, data)| match &data.op {
        Op::State(state) => state.cells.map(|c| c.of),
        _ => None,
    });
    let all: BTreeSet<u64> = of.collect();
    all.into_iter().collect()
}

fn axis(axis: u64) -> Result<usize, NotExpressible> {
    let axis = usize::try_from(axis).map_err(|_| NotExpressible)?;
    (axis < RANK).then_some(axis).ok_or(NotExpressible)
}

/// Returns the index set and the sizes of the held part of a leaf. Rows may be cut at every `granule`: blocks are
/// decoded element by element, so a part of a block has the block's numbers.
fn held_part(
    parts: &[Vec<Interval>],
    granule: u64,
    ty: &TensorType,
) -> Result<(IndexSet, [Dim; RANK]), NotExpressible> {
    let mut axes = [None, None, None, None];
    for (a, (intervals, slot)) in parts.iter().zip(&mut axes).enumerate() {
        let Some(size) = ty.dims[a].as_const() else {
            // Axes of run-time size are whole.
            continue;
        };
        let cut = |r: &Interval| !r.start.is_multiple_of(granule) || !r.len.is_multiple_of(granule);
        if a == 0 && intervals.iter().any(cut) {
            return Err(NotExpressible);
        }
        *slot = Pattern::new(&Dim::ONE, size, intervals.iter().copied())?;
    }
    Ok((from_axes(&axes, &ty.dims)?, selected_dims(&axes, &ty.dims)?))
}
