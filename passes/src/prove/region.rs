//! One region: its terms, and what its programs' values are.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use egg::Id;
use tpc_ir::op::{Concat, Copy, Inferred};
use tpc_ir::{Graph, Inst, InstData, Interval, Op, TensorType, Value};

use super::Leaves;
use super::blame;
use super::pick::{Pick, Picks, Related, Unrelated, from_axes, left_of};
use super::refutation::{Refutation, Unproven};
use super::relate::in_blocks;
use super::rules::plus;
use super::rules::zeros::is_empty;
use super::signature::{self, Boundary};
use super::term::{Head, Tables, View};
use super::terms::Terms;

/// What a region's proof may use.
pub(super) struct Task<'a> {
    pub(super) model: &'a Graph,
    pub(super) programs: &'a Graph,
    pub(super) leaves: &'a Leaves<'a>,
    pub(super) known: &'a Known,
    pub(super) of_model: &'a [Inst],
    pub(super) of_programs: &'a [Inst],
    /// Per instruction of the model, its region.
    pub(super) model_region: &'a [usize],
    /// The regions that are proved together.
    pub(super) regions: Range<usize>,
    /// Per value of the programs, the last region that uses it.
    pub(super) last_use: &'a [usize],
}

/// Why a region is not proved.
#[derive(Debug)]
pub(super) enum Stop {
    /// A value of it is nothing that the model has.
    Refuted(Box<Refutation>),
    /// A sum is done in a later region only.
    Crossing(Box<Refutation>),
}

impl From<Box<Refutation>> for Stop {
    fn from(r: Box<Refutation>) -> Stop {
        Stop::Refuted(r)
    }
}

impl Task<'_> {
    /// Whether the model defines a value in this region.
    pub(super) fn is_inside(&self, v: Value) -> bool {
        let region = self.model_region[self.model.value(v).def.0.index()];
        self.regions.contains(&region)
    }

    /// Whether a value of the programs is used in a later region, or by the caller.
    pub(super) fn is_wanted(&self, v: Value) -> bool {
        self.last_use[v.index()] >= self.regions.end
    }
}

/// A value of the programs, as the model has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// A value of the model or a part of one.
    Part {
        /// The model's value.
        model: Value,
        /// What of it; `None` for all, as it is.
        view: Option<View>,
    },
    /// No elements at all.
    Nothing(TensorType),
}

/// What has been proved so far.
#[derive(Debug)]
pub(super) struct Known {
    /// Per value of the programs, all that it is known to be; what is nearest to the model first.
    forms: Vec<Vec<Form>>,
    /// Per value of the model, the first value known to equal it.
    same: Vec<Value>,
}

impl Known {
    pub(super) fn new(model: &Graph, programs: &Graph) -> Known {
        Known {
            forms: vec![Vec::new(); programs.values().len()],
            same: model.values().map(|(v, _)| v).collect(),
        }
    }

    pub(super) fn form(&self, v: Value) -> Option<&Form> {
        self.forms[v.index()].first()
    }

    /// The first of the model's values that are known to be equal to this one.
    pub(super) fn first(&self, v: Value) -> Value {
        self.same[v.index()]
    }

    /// Whether a value of the programs is this part of that value of the model.
    pub(super) fn is(&self, v: Value, model: Value, view: Option<&View>) -> bool {
        self.forms[v.index()].iter().any(|f| match f {
            Form::Part { model: m, view: v } => *m == self.first(model) && v.as_ref() == view,
            Form::Nothing(_) => false,
        })
    }

    /// Takes over what was proved of a region, or of one equal to it but for names.
    pub(super) fn learn(
        &mut self,
        of_model: &[Inst],
        of_programs: &[Inst],
        boundary: &Boundary,
        proof: &RegionProof,
        model: &Graph,
        programs: &Graph,
    ) {
        let value = |r: ModelRef| match r {
            ModelRef::Inside(i, result) => model.inst(of_model[i]).results[result],
            ModelRef::Given(n) => boundary.values[n],
        };
        for &(i, result, same) in &proof.same {
            let v = model.inst(of_model[i]).results[result];
            self.same[v.index()] = value(same);
        }
        for (i, result, forms) in &proof.forms {
            let v = programs.inst(of_programs[*i]).results[*result];
            let known = forms.iter().map(|form| match form {
                LocalForm::Part { model, view } => Form::Part {
                    model: self.first(value(*model)),
                    view: view.clone(),
                },
                LocalForm::Nothing(ty) => Form::Nothing(ty.clone()),
            });
            self.forms[v.index()] = known.collect();
        }
    }
}

/// A value of the model, seen from a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ModelRef {
    /// An instruction of the region, and which of its results.
    Inside(usize, usize),
    /// A value from outside, by its number.
    Given(usize),
}

/// A [`Form`] seen from a region.
#[derive(Clone, Debug)]
pub(super) enum LocalForm {
    Part { model: ModelRef, view: Option<View> },
    Nothing(TensorType),
}

/// What was proved of a region, in terms that hold for every region of the same signature.
#[derive(Debug)]
pub(super) struct RegionProof {
    /// Per value of the programs that is wanted outside: its instruction, which result, and what it is.
    forms: Vec<(usize, usize, Vec<LocalForm>)>,
    /// Values of the model that are equal to earlier ones.
    same: Vec<(usize, usize, ModelRef)>,
    /// Terms that it took.
    pub(super) terms: usize,
    /// How often each rule found something.
    pub(super) found: BTreeMap<&'static str, u64>,
}

/// A region's e-graph with the terms of all its values.
pub(super) struct Region<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) terms: Terms,
    /// Per value of the model.
    pub(super) model: HashMap<Value, Id>,
    /// Per number of a value of the model, what it is.
    numbers: Vec<ModelRef>,
    /// Per value of the programs.
    pub(super) programs: HashMap<Value, Id>,
    boundary: &'a Boundary,
}

/// Proves a region.
pub(super) fn prove(
    task: &Task<'_>,
    boundary: &Boundary,
    without: Option<&str>,
) -> Result<RegionProof, Stop> {
    let mut region = Region {
        task,
        terms: Terms::new(Tables::default(), without),
        model: HashMap::new(),
        numbers: Vec::new(),
        programs: HashMap::new(),
        boundary,
    };
    region.add_model();
    region.terms.of_model = false;
    for &inst in task.of_programs {
        region.add_program(inst)?;
    }
    region.finish()
}

impl<'a> Region<'a> {
    /// Notes that a class is a value of the model.
    fn name(&mut self, v: Value, id: Id, what: ModelRef) {
        let number = self.numbers.len() as u32;
        self.numbers.push(what);
        let graph = &mut self.terms.graph;
        let id = graph.find(id);
        let mut fact = graph[id].data.clone();
        if fact.model.is_none() {
            fact.model = Some(number);
            graph.set_analysis_data(id, fact);
        }
        self.model.insert(v, id);
    }

    fn given(&mut self, number: usize, ty: &TensorType) -> Id {
        let ty = self.terms.graph.analysis.tables.types.number(ty);
        let number = number as u32;
        self.terms.add(Head::Given { number, ty }, Vec::new())
    }

    /// The term of a value from outside: it is given, unless it is other elements of another.
    fn outside(&mut self, n: usize, given: &mut [Option<Id>]) -> Id {
        if let Some(id) = given[n] {
            return id;
        }
        let (task, v) = (self.task, self.boundary.values[n]);
        let data = task.model.inst(task.model.value(v).def.0);
        let of = match data.operands.as_slice() {
            &[of] if signature::is_told(&data.op) => self.boundary.find(task.known.first(of)),
            _ => None,
        };
        let ty = &task.model.value(v).ty;
        let id = match of {
            Some(of) if of != n => {
                let arg = self.outside(of, given);
                match data.op {
                    Op::Copy(_) => arg,
                    _ => self.result(data, 0, ty, vec![arg]),
                }
            }
            _ => self.given(n, ty),
        };
        given[n] = Some(id);
        id
    }

    /// Terms for the values from outside, and for the model's of this region.
    fn add_model(&mut self) {
        let (task, boundary) = (self.task, self.boundary);
        let mut given = vec![None; boundary.values.len()];
        for n in 0..given.len() {
            self.outside(n, &mut given);
        }
        for (n, (&v, id)) in boundary.values.iter().zip(given).enumerate() {
            if let Some(id) = id {
                self.name(v, id, ModelRef::Given(n));
            }
        }
        for (i, &inst) in task.of_model.iter().enumerate() {
            let data = task.model.inst(inst);
            let args: Vec<Id> = data.operands.iter().map(|&v| self.of_model(v)).collect();
            for (r, &v) in data.results.iter().enumerate() {
                let leaf = super::leaf_name(&data.op).and_then(|_| task.leaves.get(&data.op));
                let id = match leaf {
                    _ if data.op == Op::Copy(Copy) => args[r],
                    Some(first) if first != v => self.of_model(first),
                    Some(_) => {
                        let number = boundary.values.len() + i;
                        self.given(number, &task.model.value(v).ty)
                    }
                    None => self.result(data, r, &task.model.value(v).ty, args.clone()),
                };
                self.name(v, id, ModelRef::Inside(i, r));
            }
        }
    }

    /// A result of an op; constants that every place makes have no arguments but a type of their own.
    fn result(&mut self, data: &InstData, result: usize, ty: &TensorType, args: Vec<Id>) -> Id {
        let result = result as u8;
        let id = self.terms.add_op(&data.op, result, args);
        if self.terms.ty(id).is_none() && data.operands.is_empty() {
            // The type of a constant is declared: it is part of what it is.
            let constant = self.terms.graph.analysis.tables.ops.number(&data.op);
            let number = u32::MAX - constant;
            let ty = self.terms.graph.analysis.tables.types.number(ty);
            return self.terms.add(Head::Given { number, ty }, Vec::new());
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

    /// Whether the types of what an op gives are whatever the graph says.
    fn is_declared(&self, op: &Op, id: Id) -> bool {
        self.terms.ops_of(id).iter().any(|(_, _, args)| {
            let types: Option<Vec<&TensorType>> = args.iter().map(|&a| self.terms.ty(a)).collect();
            types.is_some_and(|t| op.infer(&t) == Ok(Inferred::Declared))
        })
    }

    pub(super) fn of_model(&self, v: Value) -> Id {
        let id = self
            .model
            .get(&self.task.known.first(v))
            .or(self.model.get(&v));
        *id.expect(
            "invariant: values from outside are in the boundary, others come in program order",
        )
    }

    fn of_program(&mut self, v: Value) -> Result<Id, Unrelated> {
        if let Some(&id) = self.programs.get(&v) {
            return Ok(id);
        }
        let id = match self.task.known.form(v).ok_or(Unrelated)?.clone() {
            Form::Part { model, view } => {
                let base = self.of_model(model);
                match view {
                    Some(view) => self.terms.view(base, view.picks, view.dims),
                    None => base,
                }
            }
            Form::Nothing(ty) => self.terms.zero(&ty),
        };
        self.programs.insert(v, id);
        Ok(id)
    }

    /// Terms for an instruction of the programs.
    fn add_program(&mut self, inst: Inst) -> Result<(), Box<Refutation>> {
        let data = self.task.programs.inst(inst);
        let fails = |what| Refutation::at(self.task.programs, inst, what);
        let mut args = Vec::new();
        for &v in &data.operands {
            let id = self.of_program(v);
            args.push(id.map_err(|Unrelated| fails(Unproven::Operand { operand: v }))?);
        }
        let made = self.meaning(data, &args);
        let made = made.map_err(|Unrelated| fails(Unproven::Meaning))?;
        for (&v, id) in data.results.iter().zip(made) {
            let declared = &self.task.programs.value(v).ty;
            if self.terms.ty(id) != Some(declared) {
                return Err(fails(Unproven::Type {
                    found: self.terms.ty(id).cloned(),
                }));
            }
            self.programs.insert(v, id);
        }
        if self.terms.cut_short {
            return Err(fails(Unproven::Limit));
        }
        Ok(())
    }

    /// The terms of an instruction's results.
    fn meaning(&mut self, data: &InstData, args: &[Id]) -> Related<Vec<Id>> {
        match &data.op {
            Op::Copy(Copy) => Ok(args.to_vec()),
            Op::AllReduce(_) => {
                let sum = plus(&mut self.terms, args.to_vec());
                Ok(vec![sum; args.len()])
            }
            Op::AllGather(op) => {
                let axis = op.axis;
                let whole = self.terms.add_op(&Concat { axis }.into(), 0, args.to_vec());
                Ok(vec![whole; args.len()])
            }
            Op::ReduceScatter(op) => {
                let sum = plus(&mut self.terms, args.to_vec());
                self.cut(sum, axis(op.axis)?, &op.counts)
            }
            Op::AllToAll(op) => {
                let cut = axis(op.cut)?;
                let mut pieces = Vec::new();
                for &a in args {
                    pieces.push(self.cut(a, cut, &op.counts)?);
                }
                let join = Concat { axis: op.join };
                let joined = (0..args.len()).map(|rank| {
                    let parts = pieces.iter().map(|p| p[rank]).collect();
                    self.terms.add_op(&join.clone().into(), 0, parts)
                });
                Ok(joined.collect())
            }
            op => match super::leaf_name(op) {
                Some(_) => Ok(vec![self.leaf(op)?]),
                None => {
                    let types: Vec<TensorType> = data
                        .results
                        .iter()
                        .map(|&v| self.task.programs.value(v).ty.clone())
                        .collect();
                    let results = types.iter().enumerate();
                    Ok(results
                        .map(|(r, ty)| self.result(data, r, ty, args.to_vec()))
                        .collect())
                }
            },
        }
    }

    /// The pieces of a value along an axis.
    fn cut(&mut self, whole: Id, axis: usize, counts: &[u64]) -> Related<Vec<Id>> {
        let size = counts.iter().sum();
        let mut start = 0;
        let mut out = Vec::new();
        for &len in counts {
            let pick = Pick::new(&tpc_ir::Dim::ONE, size, [Interval { start, len }])?;
            out.push(self.terms.on_axis(whole, axis, pick)?);
            start += len;
        }
        Ok(out)
    }

    /// The part of a leaf of the model that a place holds.
    fn leaf(&mut self, op: &Op) -> Related<Id> {
        let whole = self.task.leaves.get(op).ok_or(Unrelated)?;
        let base = self.of_model(whole);
        let parts = match op {
            Op::Weight(w) => w.parts.as_ref(),
            Op::State(s) => s.parts.as_ref(),
            _ => None,
        };
        let Some(parts) = parts else {
            return Ok(base);
        };
        let ty = self.terms.ty(base).ok_or(Unrelated)?.clone();
        let (picks, dims) = held(parts, &ty)?;
        Ok(self.terms.view(base, picks, dims))
    }
}

fn axis(axis: u64) -> Related<usize> {
    let axis = usize::try_from(axis).map_err(|_| Unrelated)?;
    (axis < tpc_ir::RANK).then_some(axis).ok_or(Unrelated)
}

/// What is held of a leaf of that type, with the sizes that are left.
pub(super) fn held(
    parts: &[Vec<Interval>],
    ty: &TensorType,
) -> Related<(Picks, [tpc_ir::Dim; tpc_ir::RANK])> {
    let mut axes = [None, None, None, None];
    for (a, (runs, slot)) in parts.iter().zip(&mut axes).enumerate() {
        let Some(size) = ty.dims[a].as_const() else {
            // An axis whose size is known at run time only is whole.
            continue;
        };
        let block = ty.dtype.block_len();
        let cut = |r: &Interval| !r.start.is_multiple_of(block) || !r.len.is_multiple_of(block);
        if a == 0 && in_blocks(ty.dtype) && runs.iter().any(cut) {
            return Err(Unrelated);
        }
        *slot = Pick::new(&tpc_ir::Dim::ONE, size, runs.iter().copied())?;
    }
    Ok((from_axes(&axes, &ty.dims)?, left_of(&axes, &ty.dims)?))
}

impl Region<'_> {
    /// The model's value that a class is.
    pub(super) fn model_of(&self, id: Id) -> Option<Value> {
        let number = self.terms.graph[self.terms.graph.find(id)].data.model?;
        Some(match self.numbers[number as usize] {
            ModelRef::Inside(i, r) => self.task.model.inst(self.task.of_model[i]).results[r],
            ModelRef::Given(n) => self.boundary.values[n],
        })
    }

    /// Whether a value of the programs is one of the model or a part of one.
    pub(super) fn is_justified(&self, v: Value) -> bool {
        let id = self.programs.get(&v);
        id.is_some_and(|&id| !self.forms(id).is_empty())
    }

    /// Whether a value of the programs is one of that name in the model, or a part of one; so is what the model does not
    /// name so at all.
    pub(super) fn has_its_name(&self, v: Value) -> bool {
        let (programs, model) = (self.task.programs, self.task.model);
        let name = &programs.value(v).name;
        let graph = &self.terms.graph;
        let own = self.programs.get(&v).map(|&id| graph.find(id));
        let bases = own.iter().flat_map(|&id| self.terms.views_of(id));
        let bases: Vec<Id> = bases.map(|(_, b)| graph.find(b)).chain(own).collect();
        let mut of_that_name = self
            .model
            .iter()
            .filter(|(m, _)| model.value(**m).name == *name)
            .map(|(_, &id)| graph.find(id))
            .peekable();
        of_that_name.peek().is_none() || of_that_name.any(|id| bases.contains(&id))
    }

    /// The model's values of which a value of the programs is a view, with what of them.
    pub(super) fn parts_of_model(&self, v: Value) -> Vec<(Value, Picks)> {
        let Some(&id) = self.programs.get(&v) else {
            return Vec::new();
        };
        let views = self.terms.views_of(id).into_iter();
        let views = views.filter_map(|(v, base)| Some((self.model_of(base)?, v.picks.clone())));
        views
            .chain(self.model_of(id).map(|v| (v, Picks::new())))
            .collect()
    }

    /// The model's value that a class is, or those of which it is a view, the first one first.
    fn forms(&self, id: Id) -> Vec<LocalForm> {
        let graph = &self.terms.graph;
        let number = |id: Id| graph[graph.find(id)].data.model;
        if let Some(n) = number(id) {
            let model = self.numbers[n as usize];
            return vec![LocalForm::Part { model, view: None }];
        }
        if let Some(ty) = self.terms.ty(id).filter(|t| is_empty(t)) {
            return vec![LocalForm::Nothing(ty.clone())];
        }
        let views = self.terms.views_of(id).into_iter();
        let mut of_model: Vec<_> = views
            .filter_map(|(v, base)| Some((number(base)?, v)))
            .collect();
        of_model.sort_by_key(|(n, v)| (*n, v.picks.len()));
        let forms = of_model.into_iter().map(|(n, v)| LocalForm::Part {
            model: self.numbers[n as usize],
            view: Some((*v).clone()),
        });
        forms.collect()
    }

    /// What is wanted of the region must be justified.
    fn finish(mut self) -> Result<RegionProof, Stop> {
        let task = self.task;
        if self.terms.graph.analysis.contradiction {
            let inst = task.of_programs.first().copied();
            return Err(Refutation::of_output(task.programs, inst, Unproven::Contradiction).into());
        }
        let mut forms = Vec::new();
        for (i, &inst) in task.of_programs.iter().enumerate() {
            for (r, &v) in task.programs.inst(inst).results.iter().enumerate() {
                if !task.is_wanted(v) {
                    continue;
                }
                match self.forms(self.programs[&v]) {
                    own if !own.is_empty() => forms.push((i, r, own)),
                    _ if blame::is_term(&mut self, v) => {
                        return Err(Stop::Crossing(blame::find(&mut self, v)));
                    }
                    _ => return Err(blame::find(&mut self, v).into()),
                }
            }
        }
        let graph = &self.terms.graph;
        let mut same = Vec::new();
        for (i, &inst) in task.of_model.iter().enumerate() {
            for (r, v) in task.model.inst(inst).results.iter().enumerate() {
                let id = graph.find(self.model[v]);
                if let Some(n) = graph[id].data.model {
                    let first = self.numbers[n as usize];
                    if first != ModelRef::Inside(i, r) {
                        same.push((i, r, first));
                    }
                }
            }
        }
        Ok(RegionProof {
            forms,
            same,
            terms: graph.total_size(),
            found: self.terms.found,
        })
    }
}
