//! Signatures: regions with the same signature have the same proof.
//!
//! A signature spells out the region's instructions, the model's and the programs', with all that a proof sees of them.
//! Values are named by where they are defined in the region or, from outside, by what is known of them. Names of
//! tensors, layers and values do not occur.

use std::collections::HashMap;

use tpc_ir::op::{State, Weight};
use tpc_ir::{Op, Place, TensorType, Value};

use super::blame::{Refutation, Unproven};
use super::region::{Form, Task};
use super::term::{Numbered, View};

/// Numbers for what signatures mention, the same for all regions.
#[derive(Debug, Default)]
pub(super) struct Interner {
    ops: Numbered<Op>,
    types: HashMap<TensorType, u32>,
    views: HashMap<View, u32>,
}

impl Interner {
    fn ty(&mut self, ty: &TensorType) -> u32 {
        let next = self.types.len() as u32;
        match self.types.get(ty) {
            Some(&n) => n,
            None => *self.types.entry(ty.clone()).or_insert(next),
        }
    }

    fn view(&mut self, view: Option<&View>) -> u32 {
        let Some(view) = view else { return 0 };
        let next = self.views.len() as u32 + 1;
        match self.views.get(view) {
            Some(&n) => n,
            None => *self.views.entry(view.clone()).or_insert(next),
        }
    }
}

/// The model's values from outside that a region speaks of.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    pub(super) values: Vec<Value>,
    numbers: HashMap<Value, u32>,
}

impl Boundary {
    fn number(&mut self, v: Value) -> u32 {
        let next = self.values.len() as u32;
        *self.numbers.entry(v).or_insert_with(|| {
            self.values.push(v);
            next
        })
    }
}

/// Ends one part of a signature and begins the next.
const PART: u32 = u32::MAX;
/// What follows speaks of a value from outside.
const GIVEN: u32 = u32::MAX - 1;
/// What follows is the type of a value without elements.
const NOTHING: u32 = u32::MAX - 3;
/// What follows is a leaf of the model.
const LEAF: u32 = u32::MAX - 2;

/// An op without the name of what it reads.
fn nameless(op: &Op) -> Op {
    match op {
        Op::Weight(w) => Weight {
            tensor: String::new(),
            parts: w.parts.clone(),
        }
        .into(),
        Op::State(s) => State {
            name: String::new(),
            parts: s.parts.clone(),
        }
        .into(),
        other => other.clone(),
    }
}

fn place(p: Place) -> u32 {
    match p {
        Place::Host => 0,
        Place::Device(d) => 1 + d.index() as u32,
        Place::Group(g) => u32::MAX / 2 + g.index() as u32,
    }
}

/// The signature of a region, and the values from outside in the order in which it numbers them.
pub(super) fn of(
    task: &Task<'_>,
    interner: &mut Interner,
) -> Result<(Vec<u32>, Boundary), Box<Refutation>> {
    let mut out = Vec::new();
    let mut boundary = Boundary::default();
    let mut inside: HashMap<Value, u32> = HashMap::new();
    // A value of the model, by where it is.
    let model_value = |v: Value,
                       inside: &HashMap<Value, u32>,
                       boundary: &mut Boundary,
                       interner: &mut Interner,
                       out: &mut Vec<u32>| {
        match inside.get(&v) {
            Some(&n) => out.push(n),
            None => {
                let v = task.known.first(v);
                let ty = interner.ty(&task.model.value(v).ty);
                out.extend([GIVEN, boundary.number(v), ty]);
            }
        }
    };
    for &inst in task.of_model {
        let data = task.model.inst(inst);
        if let Some(first) = task.leaves.get(&data.op) {
            // Which leaf it is matters only as far as others are the same.
            out.push(LEAF);
            if !data.results.contains(&first) {
                model_value(first, &inside, &mut boundary, interner, &mut out);
            }
        } else {
            out.push(interner.ops.number(&data.op));
        }
        for &v in &data.operands {
            let v = if task.is_inside(v) {
                v
            } else {
                task.known.first(v)
            };
            model_value(v, &inside, &mut boundary, interner, &mut out);
        }
        for &v in &data.results {
            let n = inside.len() as u32;
            inside.insert(v, n);
            out.push(interner.ty(&task.model.value(v).ty));
        }
        out.push(PART);
    }
    out.push(PART);
    let mut own: HashMap<Value, u32> = HashMap::new();
    for &inst in task.of_programs {
        let data = task.programs.inst(inst);
        out.push(interner.ops.number(&nameless(&data.op)));
        if super::leaf_name(&data.op).is_some() {
            let Some(leaf) = task.leaves.get(&data.op) else {
                return Err(Refutation::at(task.programs, inst, Unproven::Leaf));
            };
            model_value(leaf, &inside, &mut boundary, interner, &mut out);
        }
        for &v in &data.operands {
            match own.get(&v) {
                Some(&n) => out.push(n),
                None => {
                    let Some(form) = task.known.form(v) else {
                        let what = Unproven::Operand { operand: v };
                        return Err(Refutation::at(task.programs, inst, what));
                    };
                    match form {
                        Form::Part { model, view } => {
                            out.push(GIVEN);
                            model_value(*model, &inside, &mut boundary, interner, &mut out);
                            out.push(interner.view(view.as_ref()));
                        }
                        Form::Nothing(ty) => out.extend([NOTHING, interner.ty(ty)]),
                    }
                }
            }
        }
        for &v in &data.results {
            let n = own.len() as u32;
            own.insert(v, n);
            let value = task.programs.value(v);
            out.extend([
                interner.ty(&value.ty),
                place(value.place),
                u32::from(task.is_wanted(v)),
            ]);
        }
        out.push(PART);
    }
    Ok((out, boundary))
}
