//! Signatures: obligations with the same signature have the same proof.
//!
//! A signature lists the instructions of the model and of the programs, with everything that a proof uses of them.
//! Values are numbered in order of definition; counterparts represent outside values. Names of tensors, layers and
//! values are omitted.

use rustc_hash::FxHashMap;
use tpc_ir::{Place, Value};

use super::boundary::{Boundary, is_inlined};
use super::interner::Tables;
use super::knowledge::Counterpart;
use super::leaves::is_named_leaf;
use super::obligation::Obligation;
use super::refutation::{Refutation, RefutationReason};

/// Separates two parts of a signature.
const PART: u32 = u32::MAX;
const OUTSIDE: u32 = u32::MAX - 1;
const LEAF: u32 = u32::MAX - 2;
const EMPTY: u32 = u32::MAX - 3;

fn place(p: Place) -> u32 {
    match p {
        Place::Host => 0,
        Place::Device(d) => 1 + d.index() as u32,
        Place::Group(g) => u32::MAX / 2 + g.index() as u32,
    }
}

/// Writes the signature of an obligation, and its boundary.
///
/// # Errors
/// Returns an instruction of the programs that reads a value without a proof.
pub(super) fn sign(
    task: &Obligation<'_>,
    tables: &mut Tables,
) -> Result<(Vec<u32>, Boundary), Box<Refutation>> {
    let mut writer = Writer {
        task,
        tables,
        out: Vec::new(),
        boundary: Boundary::default(),
        inside: FxHashMap::default(),
    };
    writer.model();
    writer.programs()?;
    Ok((writer.out, writer.boundary))
}

struct Writer<'a> {
    task: &'a Obligation<'a>,
    tables: &'a mut Tables,
    out: Vec<u32>,
    boundary: Boundary,
    inside: FxHashMap<Value, u32>,
}

impl Writer<'_> {
    /// Writes the number of a model's value. Inlined outside values are followed by their op and operand.
    fn model_value(&mut self, v: Value) {
        if let Some(&n) = self.inside.get(&v) {
            self.out.push(n);
            return;
        }
        let model = self.task.model;
        let mut v = self.task.known.representative(v);
        loop {
            let ty = self.tables.types.intern(&model.value(v).ty);
            let (number, new) = self.boundary.number(v);
            let is_number = u32::from(self.task.numbers[v.index()]);
            self.out.extend([OUTSIDE, number, ty, is_number]);
            let data = model.inst(model.value(v).def.0);
            match data.operands.as_slice() {
                &[of] if new && is_inlined(&data.op) => {
                    self.out.push(self.tables.ops.intern(&data.op));
                    v = self.task.known.representative(of);
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
                // Only two facts matter: equal leaves, and whether the leaf is a mask.
                let is_number = u32::from(task.numbers[first.index()]);
                self.out.extend([LEAF, is_number]);
                if !data.results.contains(&first) {
                    self.model_value(first);
                }
            } else {
                self.out.push(self.tables.ops.intern(&data.op));
            }
            for &v in &data.operands {
                let first = task.known.representative(v);
                self.model_value(if task.is_internal(v) { v } else { first });
            }
            for &v in &data.results {
                let n = self.inside.len() as u32;
                self.inside.insert(v, n);
                self.out
                    .push(self.tables.types.intern(&task.model.value(v).ty));
            }
            self.out.push(PART);
        }
        self.out.push(PART);
    }

    fn programs(&mut self) -> Result<(), Box<Refutation>> {
        let task = self.task;
        let mut own: FxHashMap<Value, u32> = FxHashMap::default();
        for &inst in task.of_programs {
            let data = task.programs.inst(inst);
            self.out
                .push(self.tables.ops.intern(&data.op.without_tensor_name()));
            if is_named_leaf(&data.op) {
                let Some(leaf) = task.leaves.get(&data.op) else {
                    return Err(Refutation::at(task.programs, inst, RefutationReason::Leaf));
                };
                self.model_value(leaf);
            }
            for &v in &data.operands {
                match own.get(&v) {
                    Some(&n) => self.out.push(n),
                    None => {
                        let Some(form) = task.known.counterpart(v) else {
                            let what = RefutationReason::Operand { operand: v };
                            return Err(Refutation::at(task.programs, inst, what));
                        };
                        match form {
                            Counterpart::Part { model, view } => {
                                self.out.push(OUTSIDE);
                                self.model_value(*model);
                                let number = |view| self.tables.views.intern(view) + 1;
                                self.out.push(view.as_ref().map_or(0, number));
                            }
                            Counterpart::Empty(ty) => {
                                self.out.extend([EMPTY, self.tables.types.intern(ty)]);
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
                    self.tables.types.intern(&value.ty),
                    place(value.place),
                    u32::from(task.is_live_out(v)),
                ]);
            }
            self.out.push(PART);
        }
        Ok(())
    }
}
