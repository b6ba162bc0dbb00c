//! The ops of ggml as ops of the IR.

use tpc_ir::op::{
    AddId, ArgSort, Attr, Binary, BinaryKind, Clamp, Concat, FlashAttn, GatedDeltaNet, GetRows,
    Glu, GluKind, MulMat, MulMatId, Norm, NormKind, Permute, Repeat, Rope, RopeMode, Scale,
    SetRows, Slice, SoftMax, SortOrder, SsmConv, SsmScan, Sum, TopK, TypeError, Unary, UnaryKind,
};
use tpc_ir::{Dim, Op, RANK, Value};

use super::codes;
use super::memory::{Memory, dims};
use super::record::Tensor;

/// Why an op becomes an opaque one.
enum Misfit {
    /// The IR has no such op.
    Unknown,
    /// The IR has it in other forms.
    Form(String),
}

impl From<TypeError> for Misfit {
    fn from(e: TypeError) -> Misfit {
        Misfit::Form(e.to_string())
    }
}

fn form(what: &str) -> Misfit {
    Misfit::Form(what.to_owned())
}

const NONE_NEEDED: &str = "the plan is sound without it: what it reads and makes stays whole";

/// Appends what a tensor that is no leaf computes.
pub(super) fn lower(m: &mut Memory<'_>, index: usize) -> Result<(), TypeError> {
    let t = &m.tensors[index];
    if t.is_pure_view() || t.is_empty() {
        // Views are taken when they are read; without elements nothing happens.
        return Ok(());
    }
    let operands: Vec<usize> = t
        .src
        .iter()
        .flatten()
        .copied()
        .filter(|&s| !m.tensors[s].is_empty())
        .collect();
    let op = t.op.as_str();
    if matches!(op, "SET_ROWS" | "CPY") && operands.len() < t.src.len() {
        return Ok(());
    }
    let mut values = Vec::with_capacity(operands.len());
    // What a write goes to is not read.
    let reads = if op == "CPY" && t.writes() {
        &operands[..1.min(operands.len())]
    } else {
        &operands[..]
    };
    for &s in reads {
        values.push(m.read(s)?);
    }
    // What an operand is follows from its position, but among the parts of a concatenation.
    let holes =
        t.op != "CONCAT" && operands.len() <= t.src.iter().rposition(Option::is_some).unwrap_or(0);
    let made = if holes {
        Err(form("an operand left out, or without elements"))
    } else {
        known(m, t, &operands, &values)
    };
    let made = match made {
        Ok(made) => made,
        Err(misfit) => {
            match misfit {
                Misfit::Unknown => {
                    m.note(codes::UNKNOWN_OP, t, "the IR has no such op", NONE_NEEDED);
                }
                Misfit::Form(why) => m.note(codes::UNKNOWN_FORM, t, &why, NONE_NEEDED),
            }
            if t.writes() {
                return m.spoil(index, values);
            }
            vec![m.opaque(op, values, t)]
        }
    };
    if t.writes() {
        let written = match made.as_slice() {
            [one] => m.write(index, *one),
            _ => Err(TypeError::Axis(RANK as u64)),
        };
        if written.is_err() {
            let why = "what it writes is no box of the tensor that it writes to";
            m.note(codes::NO_BOX, t, why, NONE_NEEDED);
            return m.spoil(index, made);
        }
        return Ok(());
    }
    match made.as_slice() {
        [one] => m.define(index, *one),
        _ => m.define_parts(index, made),
    }
    Ok(())
}

fn unary(op: &str) -> Option<UnaryKind> {
    Some(match op {
        "SILU" => UnaryKind::Silu,
        "GELU" => UnaryKind::Gelu,
        "GELU_ERF" => UnaryKind::GeluErf,
        "GELU_QUICK" => UnaryKind::GeluQuick,
        "RELU" => UnaryKind::Relu,
        "SIGMOID" => UnaryKind::Sigmoid,
        "TANH" => UnaryKind::Tanh,
        "EXP" => UnaryKind::Exp,
        "SQR" => UnaryKind::Sqr,
        "SQRT" => UnaryKind::Sqrt,
        "SOFTPLUS" => UnaryKind::Softplus,
        "NEG" => UnaryKind::Neg,
        "ABS" => UnaryKind::Abs,
        _ => return None,
    })
}

fn glu(op: &str) -> Option<GluKind> {
    Some(match op {
        "SWIGLU" => GluKind::Swiglu,
        "GEGLU" => GluKind::Geglu,
        "GEGLU_ERF" => GluKind::GegluErf,
        "GEGLU_QUICK" => GluKind::GegluQuick,
        "REGLU" => GluKind::Reglu,
        "SWIGLU_OAI" => GluKind::SwigluOai,
        _ => return None,
    })
}

fn binary(op: &str) -> Option<BinaryKind> {
    Some(match op {
        "ADD" => BinaryKind::Add,
        "SUB" => BinaryKind::Sub,
        "MUL" => BinaryKind::Mul,
        "DIV" => BinaryKind::Div,
        _ => return None,
    })
}

fn norm(op: &str) -> Option<NormKind> {
    Some(match op {
        "RMS_NORM" => NormKind::Rms,
        "NORM" => NormKind::Layer,
        "L2_NORM" => NormKind::L2,
        _ => return None,
    })
}

/// The op with the values it reads, one or more values that it makes; of the sizes that the capture says.
fn known(
    m: &mut Memory<'_>,
    t: &Tensor,
    operands: &[usize],
    values: &[Value],
) -> Result<Vec<Value>, Misfit> {
    let all = values.to_vec();
    let one: Op = match t.op.as_str() {
        op if let Some(kind) = unary(op) => Unary { kind }.into(),
        op if let Some(kind) = binary(op) => Binary { kind }.into(),
        op if let Some(kind) = norm(op) => Norm {
            kind,
            eps: t.float(0),
        }
        .into(),
        op if let Some(kind) = glu(op) => {
            let mut op = Glu::new(kind);
            if kind == GluKind::SwigluOai {
                (op.alpha, op.limit) = (t.float(2), t.float(3));
            }
            return gated(m, t, op, all);
        }
        "SCALE" => Scale {
            scale: t.float(0),
            bias: t.float(1),
        }
        .into(),
        "CLAMP" => Clamp {
            min: t.float(0),
            max: t.float(1),
        }
        .into(),
        "MUL_MAT" => MulMat.into(),
        "MUL_MAT_ID" => MulMatId { window: None }.into(),
        "ADD_ID" => AddId { window: None }.into(),
        "GET_ROWS" => GetRows { window: None }.into(),
        "SET_ROWS" => return set_rows(m, t, operands, values),
        "ROPE" => return rope(m, t, all),
        "SOFT_MAX" => return soft_max(m, t, all),
        "FLASH_ATTN_EXT" => return flash_attn(m, t, all),
        "SUM_ROWS" => Sum { axis: 0 }.into(),
        "ARGSORT" => ArgSort {
            order: match t.int(0) {
                0 => SortOrder::Ascending,
                1 => SortOrder::Descending,
                _ => return Err(form("an order that is neither ascending nor descending")),
            },
        }
        .into(),
        "TOP_K" => TopK { k: t.ne()[0] }.into(),
        "REPEAT" => Repeat { dims: dims(t.ne()) }.into(),
        "CONCAT" => {
            let axis = u64::try_from(t.int(0)).map_err(|_| form("a negative axis"))?;
            if let [part] = values {
                // The others are empty.
                return fits(m, t, *part);
            }
            Concat { axis }.into()
        }
        // A copy is the same elements in the order of the result.
        "CONT" | "DUP" | "CPY" => {
            let [x, ..] = values else {
                return Err(form("no operand"));
            };
            if !t.writes() && m.graph.value(*x).ty.dtype != t.dtype {
                return Err(form("a conversion of elements"));
            }
            let v = m.reshape(*x, t.ne(), &t.name)?;
            return Ok(vec![v]);
        }
        "SSM_CONV" => SsmConv.into(),
        "SSM_SCAN" => return several(m, t, SsmScan.into(), all),
        "GATED_DELTA_NET" => return several(m, t, GatedDeltaNet.into(), all),
        _ => return Err(Misfit::Unknown),
    };
    push(m, t, one, all)
}

/// Appends an op with one result of the sizes that the capture says.
fn push(
    m: &mut Memory<'_>,
    t: &Tensor,
    op: Op,
    operands: Vec<Value>,
) -> Result<Vec<Value>, Misfit> {
    let unknown = |(_, a): (_, Attr)| matches!(a, Attr::Float(x) if x.is_nan());
    if op.attrs().into_iter().any(unknown) {
        return Err(form("a parameter that is no number"));
    }
    let v = m.push(op, operands, &t.name)?;
    fits(m, t, v)
}

fn fits(m: &Memory<'_>, t: &Tensor, v: Value) -> Result<Vec<Value>, Misfit> {
    let found = &m.graph.value(v).ty;
    if found.dims == dims(t.ne()) {
        Ok(vec![v])
    } else {
        Err(Misfit::Form(format!(
            "the op makes {found} of its operands, the capture says {:?}",
            t.ne()
        )))
    }
}

/// An op with several results, which ggml packs into one tensor one after another.
fn several(
    m: &mut Memory<'_>,
    t: &Tensor,
    op: Op,
    operands: Vec<Value>,
) -> Result<Vec<Value>, Misfit> {
    // The first parameter is the number of states that are kept, 0 for one.
    if !matches!(t.int(0), 0 | 1) {
        return Err(form("states after several tokens"));
    }
    m.readable(&op, &operands)?;
    let types: Vec<_> = operands.iter().map(|&v| &m.graph.value(v).ty).collect();
    let tpc_ir::op::Inferred::Types(types) = op.infer(&types)? else {
        return Err(Misfit::Unknown);
    };
    let elements = |ty: &tpc_ir::TensorType| ty.elements().and_then(|d| d.as_const());
    let total: Option<u64> = types.iter().map(elements).sum();
    if total != Some(t.elements()) {
        return Err(form("the results are not packed one after another"));
    }
    Ok(m.declare(op, operands, types, &t.name))
}

fn gated(m: &mut Memory<'_>, t: &Tensor, op: Glu, all: Vec<Value>) -> Result<Vec<Value>, Misfit> {
    let swapped = t.int(1) != 0;
    if let ([both], true) = (all.as_slice(), swapped) {
        let half = t.ne()[0];
        let mut part = |start| {
            let slice = Slice {
                axis: 0,
                start: Dim::constant(start),
                len: Dim::constant(half),
            };
            m.push(slice, vec![*both], &t.name)
        };
        let (up, gate) = (part(0)?, part(half)?);
        return push(m, t, op.into(), vec![gate, up]);
    }
    if swapped {
        return Err(form("two operands in the other order"));
    }
    push(m, t, op.into(), all)
}

/// Rows written by index: along axis 1 in ggml. The memory that they go to becomes a new value.
fn set_rows(
    m: &mut Memory<'_>,
    t: &Tensor,
    operands: &[usize],
    values: &[Value],
) -> Result<Vec<Value>, Misfit> {
    let (&[rows, index, old], &[_, _, target]) = (values, operands) else {
        return Err(form("other than three operands"));
    };
    if m.tensors[target].layout != t.layout || m.tensors[target].root != t.root {
        return Err(form("a result that is not what it writes to"));
    }
    if m.held(t.root) != m.tensors[t.root].ne() {
        return set_columns(m, t, rows, index);
    }
    push(m, t, SetRows { axis: 1 }.into(), vec![old, rows, index])
}

/// Elements written by index into a cache that has the cells of a channel side by side. By convention the indices of a
/// token are those of its cell in every channel in order, so that the first is the cell.
fn set_columns(
    m: &mut Memory<'_>,
    t: &Tensor,
    rows: Value,
    index: Value,
) -> Result<Vec<Value>, Misfit> {
    let [_, channels, ..] = m.held(t.root);
    let elements = m.graph.value(rows).ty.elements();
    let tokens = elements.and_then(|n| n.as_const()).unwrap_or(0) / channels;
    let old = m.whole(t.root)?;
    let rows = m.reshape(rows, [channels, tokens, 1, 1], &t.name)?;
    let turn = Permute { axes: [1, 0, 2, 3] };
    let rows = m.push(turn, vec![rows], &t.name)?;
    let index = m.reshape(index, [channels, tokens, 1, 1], &t.name)?;
    let first = Slice {
        axis: 0,
        start: Dim::ZERO,
        len: Dim::ONE,
    };
    let index = m.push(first, vec![index], &t.name)?;
    let index = m.reshape(index, [tokens, 1, 1, 1], &t.name)?;
    let written = m.push(SetRows { axis: 0 }, vec![old, rows, index], &t.name)?;
    Ok(vec![written])
}

fn rope(m: &mut Memory<'_>, t: &Tensor, mut all: Vec<Value>) -> Result<Vec<Value>, Misfit> {
    let size = |i| u64::try_from(t.int(i)).map_err(|_| form("a negative size"));
    let sections =
        || -> Result<[u64; 4], Misfit> { Ok([size(11)?, size(12)?, size(13)?, size(14)?]) };
    // ggml's bits: 2 halves, 8 sections, 32 sections in turn.
    let mode = match t.int(2) {
        0 => RopeMode::Norm,
        2 => RopeMode::Neox,
        8 => RopeMode::Mrope {
            sections: sections()?,
        },
        40 => RopeMode::Imrope {
            sections: sections()?,
        },
        _ => return Err(form("a mode of rotation that the IR does not have")),
    };
    let op = Rope {
        mode,
        n_dims: size(1)?,
        n_ctx_orig: size(4)?,
        freq_base: t.float(5),
        freq_scale: t.float(6),
        ext_factor: t.float(7),
        attn_factor: t.float(8),
        beta_fast: t.float(9),
        beta_slow: t.float(10),
    };
    // ggml takes the first of as many factors as there are.
    if let Some(factors) = all.get_mut(2) {
        let used = op.n_dims / 2;
        if m.graph.value(*factors).ty.dims[0]
            .as_const()
            .is_some_and(|n| n > used)
        {
            let slice = Slice {
                axis: 0,
                start: Dim::ZERO,
                len: Dim::constant(used),
            };
            *factors = m.push(slice, vec![*factors], &t.name)?;
        }
    }
    push(m, t, op.into(), all)
}

/// A mask without the rows that ggml pads it with.
fn unpadded(m: &mut Memory<'_>, t: &Tensor, mask: Value, rows: u64) -> Result<Value, Misfit> {
    if m.graph.value(mask).ty.dims[1]
        .as_const()
        .is_none_or(|n| n <= rows)
    {
        return Ok(mask);
    }
    let slice = Slice {
        axis: 1,
        start: Dim::ZERO,
        len: Dim::constant(rows),
    };
    Ok(m.push(slice, vec![mask], &t.name)?)
}

fn soft_max(m: &mut Memory<'_>, t: &Tensor, mut all: Vec<Value>) -> Result<Vec<Value>, Misfit> {
    if t.float(1) != 0.0 {
        return Err(form("ALiBi"));
    }
    if all.len() > 2 {
        return Err(form("attention sinks"));
    }
    if let Some(mask) = all.get(1).copied() {
        all[1] = unpadded(m, t, mask, t.ne()[1])?;
    }
    push(m, t, SoftMax { scale: t.float(0) }.into(), all)
}

fn flash_attn(m: &mut Memory<'_>, t: &Tensor, mut all: Vec<Value>) -> Result<Vec<Value>, Misfit> {
    if all.len() < 4 {
        return Err(form("no mask"));
    }
    // The result is [dv, heads, tokens].
    all[3] = unpadded(m, t, all[3], t.ne()[2])?;
    let op = FlashAttn {
        scale: t.float(0),
        max_bias: t.float(1),
        softcap: t.float(2),
        heads: None,
    };
    push(m, t, op.into(), all)
}
