//! The lines of a capture: parsed, and checked so far that everything behind may trust them.

use std::collections::BTreeMap;

use serde::Deserialize;
use tpc_ir::{DType, RANK};

use super::error::CaptureError;
use crate::op::{Family, GgmlOp, OpKind};

/// A line of the file. Keys that are not listed are ignored.
#[derive(Deserialize)]
struct Line {
    id: i64,
    name: String,
    op: String,
    #[serde(rename = "type")]
    dtype: String,
    ne: [i64; RANK],
    nb: [u64; RANK],
    params: Vec<i64>,
    src: Vec<i64>,
    view: i64,
    view_offs: u64,
    flags: u64,
}

/// The memory of a tensor: sizes, strides and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout {
    /// Sizes.
    pub ne: [u64; RANK],
    /// Strides in bytes; that of axis 0 is one block.
    pub nb: [u64; RANK],
    /// Bytes from the start of the tensor that owns the memory.
    pub offset: u64,
}

/// A tensor of the capture. References are positions in the list of all.
#[derive(Clone, Debug)]
pub struct Record {
    /// Line in the file, from 1.
    pub line: usize,
    /// For people.
    pub name: String,
    /// The op, with its parameters; [`GgmlOp::None`] for leaves.
    pub op: GgmlOp,
    /// Element type.
    pub dtype: DType,
    /// Sizes, strides and offset.
    pub layout: Layout,
    /// ggml's `op_params` as they were captured, trailing zeros left out; `op` has those that are decoded.
    pub words: Vec<i32>,
    /// What it is computed from.
    pub src: Vec<Option<usize>>,
    /// The tensor that owns the memory; itself when it is no view.
    pub root: usize,
    /// Whether that is another.
    pub is_view: bool,
    /// Whether the caller fills it.
    pub is_input: bool,
    /// Whether the caller reads it.
    pub is_output: bool,
}

impl Record {
    /// Sizes.
    pub const fn ne(&self) -> [u64; RANK] {
        self.layout.ne
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.layout.ne.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.layout.ne.contains(&0)
    }

    /// Whether the op is this one.
    pub fn is(&self, kind: OpKind) -> bool {
        self.op.is(kind)
    }

    /// Whether nothing computes it: a weight, an input, a state, or a view of one that has no op of its own.
    pub fn is_leaf(&self) -> bool {
        self.is(OpKind::None)
    }

    /// Whether it only looks at memory, and nothing is computed.
    pub fn is_pure_view(&self) -> bool {
        self.is_view && self.op.family() == Family::View
    }

    /// Whether it changes the memory of the tensor that it is a view of.
    pub fn writes(&self) -> bool {
        self.is_view && !self.is_pure_view() && !self.is_leaf()
    }
}

const MAX_ELEMENTS: u64 = 1 << 48;
const FLAG_INPUT: u64 = 1;
const FLAG_OUTPUT: u64 = 2;

/// Strides of a packed tensor of these sizes.
pub fn packed(dtype: DType, ne: [u64; RANK]) -> [u64; RANK] {
    let mut nb = [dtype.block_bytes(); RANK];
    nb[1] = ne[0] / dtype.block_len() * dtype.block_bytes();
    for i in 2..RANK {
        nb[i] = nb[i - 1].saturating_mul(ne[i - 1]);
    }
    nb
}

/// Reads every line.
///
/// # Errors
/// When a line is no record; the error has the line.
pub fn parse(text: &str) -> Result<Vec<Record>, CaptureError> {
    let mut out: Vec<Record> = Vec::new();
    let mut ids: BTreeMap<i64, usize> = BTreeMap::new();
    for (i, text) in text.lines().enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        let line = i + 1;
        let read: Line = serde_json::from_str(text).map_err(|e| CaptureError::Record {
            line,
            message: e.to_string(),
        })?;
        let (id, tensor) = (read.id, tensor(line, read, &ids, &out)?);
        if ids.insert(id, out.len()).is_some() {
            return Err(CaptureError::Reference {
                line,
                name: tensor.name,
                role: "id",
                id,
                what: "which an earlier line has",
            });
        }
        out.push(tensor);
    }
    if out.iter().all(Record::is_leaf) {
        return Err(CaptureError::Empty { records: out.len() });
    }
    Ok(out)
}

fn tensor(
    line: usize,
    read: Line,
    ids: &BTreeMap<i64, usize>,
    before: &[Record],
) -> Result<Record, CaptureError> {
    let name = read.name;
    let dtype = DType::from_name(&read.dtype).ok_or_else(|| CaptureError::ElementType {
        line,
        name: name.clone(),
        found: read.dtype.clone(),
    })?;
    let sizes = |what| CaptureError::Sizes {
        line,
        name: name.clone(),
        ne: read.ne,
        what,
    };
    let mut ne = [0; RANK];
    for (to, &from) in ne.iter_mut().zip(&read.ne) {
        *to = u64::try_from(from).map_err(|_| sizes("a tensor with a negative size"))?;
    }
    // Zero sizes do not hide others that overflow.
    let elements = ne.iter().try_fold(1_u64, |a, &n| a.checked_mul(n.max(1)));
    if elements.is_none_or(|n| n > MAX_ELEMENTS) {
        return Err(sizes("a tensor larger than any memory"));
    }
    if !ne[0].is_multiple_of(dtype.block_len()) {
        return Err(sizes("a tensor whose rows are no whole blocks"));
    }
    let find = |role, id: i64| {
        let missing = || CaptureError::Reference {
            line,
            name: name.clone(),
            role,
            id,
            what: "which no earlier line has",
        };
        match id {
            -1 => Ok(None),
            id => ids.get(&id).copied().map(Some).ok_or_else(missing),
        }
    };
    let src = read
        .src
        .iter()
        .map(|&id| find("src", id))
        .collect::<Result<Vec<_>, _>>()?;
    let view = find("view", read.view)?;
    let root = view.map(|v| before[v].root);
    let layout = Layout {
        ne,
        nb: read.nb,
        offset: read.view_offs,
    };
    match root {
        Some(root) => inside(line, &name, dtype, &layout, &before[root])?,
        None => {
            let expected = packed(dtype, ne);
            if expected != read.nb {
                return Err(CaptureError::Strides {
                    line,
                    name,
                    found: read.nb,
                    expected,
                });
            }
        }
    }
    let words = read.params.iter().map(|&p| {
        // Words of 32 bits, signed or not.
        u32::try_from(p).map_or_else(|_| i32::try_from(p).ok(), |u| Some(u.cast_signed()))
    });
    let words = words
        .collect::<Option<Vec<i32>>>()
        .ok_or_else(|| CaptureError::Record {
            line,
            message: "a parameter is no word of 32 bits".to_owned(),
        })?;
    Ok(Record {
        line,
        name,
        op: GgmlOp::parse(&read.op, &words),
        dtype,
        layout,
        words,
        src,
        root: root.unwrap_or(before.len()),
        is_view: root.is_some(),
        is_input: read.flags & FLAG_INPUT != 0,
        is_output: read.flags & FLAG_OUTPUT != 0,
    })
}

/// Fails when a view reaches beyond the tensor that owns the memory.
fn inside(
    line: usize,
    name: &str,
    dtype: DType,
    layout: &Layout,
    root: &Record,
) -> Result<(), CaptureError> {
    if layout.ne.contains(&0) {
        return Ok(());
    }
    let blocks = [
        layout.ne[0] / dtype.block_len(),
        layout.ne[1],
        layout.ne[2],
        layout.ne[3],
    ];
    let last = blocks
        .iter()
        .zip(layout.nb)
        .try_fold(layout.offset, |at, (&n, nb)| {
            at.checked_add((n - 1).checked_mul(nb)?)
        });
    let end = last.and_then(|at| at.checked_add(dtype.block_bytes()));
    let bytes = root.elements() / root.dtype.block_len() * root.dtype.block_bytes();
    match end {
        Some(end) if end <= bytes => Ok(()),
        _ => Err(CaptureError::OutsideView {
            line,
            name: name.to_owned(),
            end: end.unwrap_or(u64::MAX),
            bytes,
            root: root.line,
        }),
    }
}
