use tpc_ir::op::{InputKind, Op, Rope, RopeMode};
use tpc_ir::{
    Bindings, CELL_BLOCK, CellParts, Dim, Graph, Interval, Output, RANK, Symbol, TensorType, Value,
};

use crate::tensor::Shape;

/// The content of a state's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellKind {
    /// One token, in a cache without a window.
    Full,
    /// One token, in a sliding-window cache.
    Windowed,
    /// One sequence, in a recurrent state.
    Sequence,
}

impl CellKind {
    const ALL: [CellKind; 3] = [CellKind::Full, CellKind::Windowed, CellKind::Sequence];

    const fn symbol(self) -> Symbol {
        match self {
            CellKind::Full => Symbol::NCtx,
            CellKind::Windowed => Symbol::NCtxSwa,
            CellKind::Sequence => Symbol::NSeqMax,
        }
    }
}

/// Elements of a cell that rotary embedding rotates by the token's position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// First element along axis 0.
    pub start: u64,
    /// Parameters of the embedding.
    pub rope: Rope,
    /// The weight that divides the embedding's frequencies.
    pub factors: Option<Value>,
}

/// A state, or a place's part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateInfo {
    /// The value.
    pub value: Value,
    /// Name, which all parts of a state share.
    pub name: String,
    /// The value's type.
    pub ty: TensorType,
    /// Stored intervals of each axis; `None` for the whole state.
    pub parts: Option<Vec<Vec<Interval>>>,
    /// Content of the cells, and the axis that counts cells. All later axes have size 1.
    pub cells: Option<(CellKind, usize)>,
    /// Stored parts of the cells; `None` if the state is not divided by cells.
    pub cell_parts: Option<CellParts>,
    /// Rotary embeddings in the state, or the reason why they are unknown.
    pub rotations: Result<Vec<Rotation>, String>,
}

impl StateInfo {
    /// Returns a graph's states, in order.
    pub fn of(graph: &Graph) -> Vec<StateInfo> {
        let states = graph
            .values()
            .filter_map(|(value, data)| match graph.def_op(value) {
                Op::State(op) => Some((value, data, op)),
                _ => None,
            });
        let absolute = absolute_positions(graph);
        states
            .map(|(value, data, op)| StateInfo {
                value,
                name: op.name.clone(),
                ty: data.ty.clone(),
                parts: op.parts.clone(),
                cells: cells(&data.ty, op.cells, graph.cell_unit.0),
                cell_parts: op.cells,
                rotations: match absolute {
                    true => Err("the model uses absolute positions".into()),
                    false => rotations(graph, value),
                },
            })
            .collect()
    }

    /// Returns the state's sizes; `None` if they do not fit memory.
    pub fn shape(&self, sizes: &Bindings) -> Option<Shape> {
        Shape::of(&self.ty, sizes).ok()
    }
}

/// Returns the content and the axis of a state's cells, in a graph with units of `unit` cells.
fn cells(ty: &TensorType, parts: Option<CellParts>, unit: u64) -> Option<(CellKind, usize)> {
    let held = match parts {
        None => unit,
        Some(parts) => {
            let rounds = unit.checked_div(parts.of)?;
            let whole = rounds * parts.of == unit && rounds.is_multiple_of(CELL_BLOCK as u64);
            rounds.checked_mul(parts.count).filter(|_| whole)?
        }
    };
    let kind = |axis: usize| {
        let mut kinds = CellKind::ALL.into_iter();
        let divided = |k: &CellKind| parts.is_none() || k.symbol().counts_cells();
        kinds.find(|k| {
            divided(k) && Dim::from(k.symbol()).in_units(held).as_ref() == Some(&ty.dims[axis])
        })
    };
    let axis = (1..RANK).rev().find(|&axis| !ty.dims[axis].is_one())?;
    let inner = ty.dims[..axis].iter().all(|d| d.as_const().is_some());
    kind(axis).filter(|_| inner).map(|kind| (kind, axis))
}

/// Follows copies back to their source.
fn source(graph: &Graph, mut value: Value) -> Value {
    while let Op::Copy(_) = graph.def_op(value) {
        value = graph.inst(graph.value(value).def.0).operands[0];
    }
    value
}

/// True if an op other than rotary embedding uses positions. Query temperatures are a separate input.
fn absolute_positions(graph: &Graph) -> bool {
    let position = |v: &Value| match graph.def_op(source(graph, *v)) {
        Op::Input(input) => matches!(input.kind, InputKind::Positions | InputKind::PositionsMrope),
        _ => false,
    };
    graph.insts().any(|(_, inst)| {
        let uses = !matches!(inst.op, Op::Copy(_) | Op::Rope(_));
        uses && inst.operands.iter().any(position)
    })
}

fn rotations(graph: &Graph, state: Value) -> Result<Vec<Rotation>, String> {
    let updated = graph.outputs.iter().find_map(|o| match o {
        Output::State { state: s, value } if *s == state => Some(*value),
        _ => None,
    });
    let Some(updated) = updated else {
        return Ok(Vec::new());
    };
    match graph.def_op(updated) {
        Op::SetRows(_) => {
            let written = graph.inst(graph.value(updated).def.0).operands[1];
            let mut out = Vec::new();
            find(graph, written, (0, true), &mut out)?;
            Ok(out)
        }
        op => Err(format!("`{}` writes the state", op.name())),
    }
}

/// Finds the rotary embeddings of a value whose axis 0 begins at element `start` of the cell. `plain` is true if only
/// moves of elements are in between.
fn find(
    graph: &Graph,
    value: Value,
    (start, plain): (u64, bool),
    out: &mut Vec<Rotation>,
) -> Result<(), String> {
    let inst = graph.inst(graph.value(value).def.0);
    let operand = |i: usize| inst.operands[i];
    let width = |v: Value| graph.value(v).ty.dims[0].as_const();
    match &inst.op {
        Op::Rope(rope) => match rope.mode {
            RopeMode::Norm | RopeMode::Neox if plain => {
                let factors = inst.operands.get(2).map(|f| source(graph, *f));
                out.push(Rotation {
                    start,
                    rope: rope.clone(),
                    factors,
                });
                Ok(())
            }
            RopeMode::Norm | RopeMode::Neox => Err("keys are changed after their rotation".into()),
            RopeMode::Mrope { .. } | RopeMode::Imrope { .. } => {
                Err("positions have several parts (M-RoPE)".into())
            }
        },
        Op::Copy(_) | Op::Scale(_) | Op::AllReduce(_) => {
            find(graph, operand(0), (start, plain), out)
        }
        Op::AllGather(_) | Op::AllToAll(_) | Op::Reshape(_) | Op::Permute(_) | Op::Slice(_) => {
            let kept = width(value) == width(operand(0));
            find(graph, operand(0), (start, plain && kept), out)
        }
        Op::Concat(op) if op.axis == 0 => {
            let mut start = start;
            for &part in &inst.operands {
                find(graph, part, (start, plain), out)?;
                let width = width(part).ok_or("a part of the cell has a variable size")?;
                start += width;
            }
            Ok(())
        }
        Op::Norm(_) | Op::NormApply(_) | Op::Binary(_) | Op::Unary(_) | Op::Hadamard(_) => {
            find(graph, operand(0), (start, false), out)
        }
        Op::MulMat(_) | Op::MulMatId(_) => Ok(()),
        op => Err(format!("`{}` computes the content of the state", op.name())),
    }
}
