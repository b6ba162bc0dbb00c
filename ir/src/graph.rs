//! Graphs: values and instructions in program order.

use crate::entity::{Class, Device, Group, Inst, Value};
use crate::op::{InferredTypes, Op, TypeError};
use crate::place::{DeviceData, GroupData, Place};
use crate::sharding::{ClassData, Sharding};
use crate::types::TensorType;

/// The highest layer number, small enough for tables with an entry per layer.
pub const MAX_LAYER: u32 = u16::MAX as u32;

/// A value of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueData {
    /// A name for display only; may be empty or repeated.
    pub name: String,
    /// The type of the whole value, over all devices of its place.
    pub ty: TensorType,
    /// The place that holds the value.
    pub place: Place,
    /// The division among the devices of its place.
    pub sharding: Sharding,
    /// The defining instruction, and the number of the result.
    pub def: (Inst, usize),
}

/// One op with its operands and results.
#[derive(Clone, Debug, PartialEq)]
pub struct InstData {
    /// The op.
    pub op: Op,
    /// The values that the op reads.
    pub operands: Vec<Value>,
    /// The values that the op defines.
    pub results: Vec<Value>,
    /// The layer; `None` before the first and after the last.
    pub layer: Option<u32>,
}

/// An output of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A result of the model, by name (`logits`).
    Named(String, Value),
    /// The new content of a state.
    State {
        /// The value defined by the `state` op.
        state: Value,
        /// The state's content in the next batch.
        value: Value,
    },
}

impl Output {
    /// Returns the delivered value.
    pub const fn value(&self) -> Value {
        match self {
            Output::Named(_, v) | Output::State { value: v, .. } => *v,
        }
    }
}

/// The number of cells per unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellUnit(pub u64);

impl Default for CellUnit {
    fn default() -> Self {
        CellUnit(1)
    }
}

/// A program at any [stage](crate::verify::stage).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// The model's name.
    pub name: String,
    /// Devices, in the user's order.
    pub devices: Vec<DeviceData>,
    /// Groups of devices.
    pub groups: Vec<GroupData>,
    /// Classes of split factors.
    pub classes: Vec<ClassData>,
    /// The number of cells that `n_kv`, `n_ctx`, `n_kv_swa` and `n_ctx_swa` count as one; 1 unless caches are divided by
    /// cells.
    pub cell_unit: CellUnit,
    values: Vec<ValueData>,
    insts: Vec<InstData>,
    /// Results of the model and new contents of states.
    pub outputs: Vec<Output>,
}

impl Graph {
    /// Returns an empty graph.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph {
            name: name.into(),
            ..Graph::default()
        }
    }

    /// Returns a graph without instructions, with the name and the unit of cells of this graph.
    #[must_use]
    pub fn without_insts(&self) -> Graph {
        Graph {
            name: self.name.clone(),
            cell_unit: self.cell_unit,
            ..Graph::default()
        }
    }

    /// Returns the graph with cells counted in units of `unit` cells; `None` on overflow, or if the graph already counts
    /// units.
    #[must_use]
    pub fn in_units(&self, unit: u64) -> Option<Graph> {
        if self.cell_unit != CellUnit::default() {
            return None;
        }
        let mut out = self.clone();
        out.cell_unit = CellUnit(unit);
        for value in &mut out.values {
            for dim in &mut value.ty.dims {
                *dim = dim.in_units(unit)?;
            }
        }
        for inst in &mut out.insts {
            inst.op = inst.op.map_dims(&mut |dim| dim.in_units(unit))?;
        }
        Some(out)
    }

    /// Reserves capacity.
    pub fn reserve(&mut self, values: usize, insts: usize) {
        self.values.reserve(values);
        self.insts.reserve(insts);
    }

    /// Returns every instruction in program order.
    pub fn insts(&self) -> impl DoubleEndedIterator<Item = (Inst, &InstData)> + ExactSizeIterator {
        self.insts
            .iter()
            .enumerate()
            .map(|(i, d)| (Inst::new(i), d))
    }

    /// Returns every value, in order of definition.
    pub fn values(
        &self,
    ) -> impl DoubleEndedIterator<Item = (Value, &ValueData)> + ExactSizeIterator {
        self.values
            .iter()
            .enumerate()
            .map(|(i, d)| (Value::new(i), d))
    }

    /// Returns an instruction.
    pub fn inst(&self, inst: Inst) -> &InstData {
        &self.insts[inst.index()]
    }

    /// Returns a value.
    pub fn value(&self, value: Value) -> &ValueData {
        &self.values[value.index()]
    }

    /// Returns a mutable value, to change its name, place or sharding.
    pub fn value_mut(&mut self, value: Value) -> &mut ValueData {
        &mut self.values[value.index()]
    }

    /// Returns a class.
    pub fn class(&self, class: Class) -> &ClassData {
        &self.classes[class.index()]
    }

    /// Returns a group.
    pub fn group(&self, group: Group) -> &GroupData {
        &self.groups[group.index()]
    }

    /// Returns a device.
    pub fn device(&self, device: Device) -> &DeviceData {
        &self.devices[device.index()]
    }

    /// Returns the op that defines a value.
    pub fn def_op(&self, value: Value) -> &Op {
        &self.inst(self.value(value).def.0).op
    }

    /// True if a value is part of a weight and its rows begin or end inside quantisation blocks.
    pub fn cuts_blocks(&self, value: Value) -> bool {
        let dtype = self.value(value).ty.dtype;
        matches!(self.def_op(value), Op::Weight(w) if w.cuts_blocks(dtype))
    }

    /// True if two instructions have the same op and the same types.
    pub fn is_alike(&self, a: &InstData, b: &InstData) -> bool {
        let same = |a: &[Value], b: &[Value]| {
            let ty = |v: &Value| &self.value(*v).ty;
            a.len() == b.len() && a.iter().map(ty).eq(b.iter().map(ty))
        };
        a.op == b.op && same(&a.operands, &b.operands) && same(&a.results, &b.results)
    }

    /// Returns the number of devices at `place`.
    pub fn ranks(&self, place: Place) -> usize {
        match place {
            Place::Host | Place::Device(_) => 1,
            Place::Group(g) => self.groups.get(g.index()).map_or(0, |g| g.devices.len()),
        }
    }

    /// Appends an instruction with results of these types, on `place`, unnamed and mirrored. Verification checks the
    /// types.
    pub fn push(
        &mut self,
        op: impl Into<Op>,
        operands: Vec<Value>,
        types: Vec<TensorType>,
        place: Place,
        layer: Option<u32>,
    ) -> Inst {
        let places = vec![place; types.len()];
        self.push_at(op, operands, types, &places, layer)
    }

    /// Appends an instruction like [`Self::push`], with a place per result.
    pub fn push_at(
        &mut self,
        op: impl Into<Op>,
        operands: Vec<Value>,
        types: Vec<TensorType>,
        places: &[Place],
        layer: Option<u32>,
    ) -> Inst {
        let inst = Inst::new(self.insts.len());
        let mut results = Vec::with_capacity(types.len());
        for (i, (ty, &place)) in types.into_iter().zip(places).enumerate() {
            results.push(Value::new(self.values.len()));
            let sharding = Sharding::mirrored();
            self.values.push(ValueData {
                name: String::new(),
                ty,
                place,
                sharding,
                def: (inst, i),
            });
        }
        self.insts.push(InstData {
            op: op.into(),
            operands,
            results,
            layer,
        });
        inst
    }

    /// Drops the instructions that `keep` rejects and renumbers the others in order.
    ///
    /// # Panics
    /// Panics if a remaining instruction or output reads a dropped value.
    pub fn retain(&mut self, keep: impl Fn(Inst) -> bool) {
        let mut map: Vec<Option<Value>> = vec![None; self.values.len()];
        let kept = self.values().filter(|(_, v)| keep(v.def.0));
        for (to, (from, _)) in kept.enumerate() {
            map[from.index()] = Some(Value::new(to));
        }
        self.values.retain(|v| keep(v.def.0));
        let at = |v: &mut Value| {
            *v = map[v.index()]
                .expect("invariant: retained instructions do not read dropped values");
        };
        let (mut before, mut after) = (0, 0);
        let values = &mut self.values;
        self.insts.retain_mut(|data| {
            before += 1;
            if !keep(Inst::new(before - 1)) {
                return false;
            }
            data.operands.iter_mut().for_each(at);
            for v in &mut data.results {
                at(v);
                values[v.index()].def.0 = Inst::new(after);
            }
            after += 1;
            true
        });
        for output in &mut self.outputs {
            match output {
                Output::Named(_, value) => at(value),
                Output::State { state, value } => [state, value].into_iter().for_each(at),
            }
        }
    }

    /// Appends an instruction with one inferred result, on `place`.
    ///
    /// # Errors
    /// Returns an error if the operands do not fit the op.
    ///
    /// # Panics
    /// Panics if the op is a leaf or has several results; use [`Self::push`] for these.
    pub fn push_with_inference(
        &mut self,
        op: impl Into<Op>,
        operands: Vec<Value>,
        place: Place,
        layer: Option<u32>,
    ) -> Result<Value, TypeError> {
        let op = op.into();
        let types: Vec<&TensorType> = operands.iter().map(|&v| &self.value(v).ty).collect();
        let types = match op.infer(&types)? {
            InferredTypes::Types(t) => t,
            InferredTypes::Declared => Vec::new(),
        };
        assert_eq!(
            types.len(),
            1,
            "push_with_inference is for ops with one inferred result, not {}",
            op.name()
        );
        let inst = self.push(op, operands, types, place, layer);
        Ok(self.inst(inst).results[0])
    }
}
