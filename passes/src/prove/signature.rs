//! Signatures: regions with the same signature have the same proof.
//!
//! A signature spells out the region's instructions, the model's and the programs', with all that a proof sees of them.
//! Values are named by where they are defined in the region or, from outside, by what is known of them. Names of
//! tensors, layers and values do not occur.

use std::collections::HashMap;

use tpc_ir::{Op, Place, TensorType, Value};

use super::refutation::{Refutation, Unproven};
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
    /// The number of a value, and whether it is new.
    fn number(&mut self, v: Value) -> (u32, bool) {
        let next = self.values.len() as u32;
        let n = *self.numbers.entry(v).or_insert(next);
        if n == next {
            self.values.push(v);
        }
        (n, n == next)
    }

    /// Which of the values from outside it is.
    pub(super) fn find(&self, v: Value) -> Option<usize> {
        self.numbers.get(&v).map(|&n| n as usize)
    }
}

/// Whether what an op makes is told of a value from outside: other elements of the same, which a device may take in
/// another layer than the model.
pub(super) const fn is_told(op: &Op) -> bool {
    op.is_layout() || matches!(op, Op::Slice(_) | Op::Repeat(_) | Op::Copy(_))
}

/// Prologue one part of a signature and begins the next.
const PART: u32 = u32::MAX;
/// What follows speaks of a value from outside.
const GIVEN: u32 = u32::MAX - 1;
/// What follows is the type of a value without elements.
const NOTHING: u32 = u32::MAX - 3;
/// What follows is a leaf of the model.
const LEAF: u32 = u32::MAX - 2;

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
    let mut writer = Writer {
        task,
        interner,
        out: Vec::new(),
        boundary: Boundary::default(),
        inside: HashMap::new(),
    };
    writer.model();
    writer.programs()?;
    Ok((writer.out, writer.boundary))
}

struct Writer<'a> {
    task: &'a Task<'a>,
    interner: &'a mut Interner,
    out: Vec<u32>,
    boundary: Boundary,
    /// The model's values of the region.
    inside: HashMap<Value, u32>,
}

impl Writer<'_> {
    /// A value of the model, by where it is; of some from outside what they are made of as well.
    fn model_value(&mut self, v: Value) {
        if let Some(&n) = self.inside.get(&v) {
            self.out.push(n);
            return;
        }
        let model = self.task.model;
        let mut v = self.task.known.first(v);
        loop {
            let ty = self.interner.ty(&model.value(v).ty);
            let (number, new) = self.boundary.number(v);
            self.out.extend([GIVEN, number, ty]);
            let data = model.inst(model.value(v).def.0);
            match data.operands.as_slice() {
                &[of] if new && is_told(&data.op) => {
                    self.out.push(self.interner.ops.number(&data.op));
                    v = self.task.known.first(of);
                }
                _ => return,
            }
        }
    }

    fn model(&mut self) {
        let task = self.task;
        for &inst in task.of_model {
            let data = task.model.inst(inst);
            if let Some(first) = task.leaves.get(&data.op) {
                // Which leaf it is matters only as far as others are the same.
                self.out.push(LEAF);
                if !data.results.contains(&first) {
                    self.model_value(first);
                }
            } else {
                self.out.push(self.interner.ops.number(&data.op));
            }
            for &v in &data.operands {
                let first = task.known.first(v);
                self.model_value(if task.is_inside(v) { v } else { first });
            }
            for &v in &data.results {
                let n = self.inside.len() as u32;
                self.inside.insert(v, n);
                self.out.push(self.interner.ty(&task.model.value(v).ty));
            }
            self.out.push(PART);
        }
        self.out.push(PART);
    }

    fn programs(&mut self) -> Result<(), Box<Refutation>> {
        let task = self.task;
        let mut own: HashMap<Value, u32> = HashMap::new();
        for &inst in task.of_programs {
            let data = task.programs.inst(inst);
            self.out.push(self.interner.ops.number(&data.op.nameless()));
            if super::leaf_name(&data.op).is_some() {
                let Some(leaf) = task.leaves.get(&data.op) else {
                    return Err(Refutation::at(task.programs, inst, Unproven::Leaf));
                };
                self.model_value(leaf);
            }
            for &v in &data.operands {
                match own.get(&v) {
                    Some(&n) => self.out.push(n),
                    None => {
                        let Some(form) = task.known.form(v) else {
                            let what = Unproven::Operand { operand: v };
                            return Err(Refutation::at(task.programs, inst, what));
                        };
                        match form {
                            Form::Part { model, view } => {
                                self.out.push(GIVEN);
                                self.model_value(*model);
                                self.out.push(self.interner.view(view.as_ref()));
                            }
                            Form::Nothing(ty) => {
                                self.out.extend([NOTHING, self.interner.ty(ty)]);
                            }
                        }
                    }
                }
            }
            for &v in &data.results {
                let n = own.len() as u32;
                own.insert(v, n);
                let value = task.programs.value(v);
                self.out.extend([
                    self.interner.ty(&value.ty),
                    place(value.place),
                    u32::from(task.is_wanted(v)),
                ]);
            }
            self.out.push(PART);
        }
        Ok(())
    }
}
