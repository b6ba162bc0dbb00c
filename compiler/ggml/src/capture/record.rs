use std::collections::BTreeMap;

use serde::Deserialize;
use tpc_ir::{DType, RANK};

use super::error::CaptureError;
use crate::op::{Family, GgmlOp, OpKind};

/// A line of the file. Other keys are ignored.
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
    role: Option<Role>,
    #[serde(default)]
    also: Vec<[u64; RANK]>,
}

/// The role of a leaf, if the capturing program knew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A leaf that graphs write and that is kept between batches.
    State,
    /// A leaf that the caller gives with every batch.
    Input,
    /// A leaf that the caller gives once.
    Weight,
}

impl Role {
    /// Returns the role's word in a capture.
    pub const fn word(self) -> &'static str {
        match self {
            Role::State => "state",
            Role::Input => "input",
            Role::Weight => "weight",
        }
    }
}

/// A tensor's memory: sizes, strides and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout {
    /// The sizes.
    pub ne: [u64; RANK],
    /// The strides in bytes; axis 0 has one block.
    pub nb: [u64; RANK],
    /// The offset in the owner's memory, in bytes.
    pub offset: u64,
}

/// A captured tensor. References are positions in the list of records.
#[derive(Clone, Debug)]
pub struct Record {
    /// The line, from 1.
    pub line: usize,
    /// The name, which does not affect the graph.
    pub name: String,
    /// The op with its parameters; [`GgmlOp::None`] for leaves.
    pub op: GgmlOp,
    /// The element type.
    pub dtype: DType,
    /// The sizes, strides and offset.
    pub layout: Layout,
    /// The captured `op_params` without trailing zeros.
    pub words: Vec<i32>,
    /// The operands by position; `None` if absent.
    pub src: Vec<Option<usize>>,
    /// The owner of the memory: for a view, another tensor.
    pub root: usize,
    /// True if another tensor owns the memory.
    pub is_view: bool,
    /// True if the caller fills the tensor.
    pub is_input: bool,
    /// True if the caller reads the tensor.
    pub is_output: bool,
    /// The role of a leaf; `None` if unknown.
    pub role: Option<Role>,
    /// The sizes in other graphs of the program, in the same number for all records.
    pub also: Vec<[u64; RANK]>,
}

impl Record {
    /// Returns the sizes.
    pub const fn ne(&self) -> [u64; RANK] {
        self.layout.ne
    }

    /// Returns the number of elements.
    pub fn elements(&self) -> u64 {
        self.layout.ne.iter().product()
    }

    /// True if the tensor is empty.
    pub fn is_empty(&self) -> bool {
        self.layout.ne.contains(&0)
    }

    /// True if the record has this op.
    pub fn is(&self, kind: OpKind) -> bool {
        self.op.is(kind)
    }

    /// True for a weight, an input, a state, or a view without its own op.
    pub fn is_leaf(&self) -> bool {
        self.is(OpKind::None)
    }

    /// True for a view without a computation.
    pub fn is_pure_view(&self) -> bool {
        self.is_view && self.op.family() == Family::View
    }

    /// True if the record changes the memory that it views.
    pub fn writes(&self) -> bool {
        self.is_view && !self.is_pure_view() && !self.is_leaf()
    }
}

const MAX_ELEMENTS: u64 = 1 << 48;
/// The maximum number of operands. ggml has ten; forks may have more.
const MAX_SRC: usize = 32;
/// The maximum length of a name, in bytes; ggml's is 63.
const MAX_NAME: usize = 200;
const FLAG_INPUT: u64 = 1;
const FLAG_OUTPUT: u64 = 2;

/// Returns the packed strides in bytes.
pub fn packed(dtype: DType, ne: [u64; RANK]) -> [u64; RANK] {
    let mut nb = [dtype.block_bytes(); RANK];
    nb[1] = ne[0] / dtype.block_len() * dtype.block_bytes();
    for i in 2..RANK {
        nb[i] = nb[i - 1].saturating_mul(ne[i - 1]);
    }
    nb
}

/// Parses a capture, one JSON object per line.
///
/// # Errors
/// Returns an error with the line number for an invalid record.
pub fn parse(text: &str) -> Result<Vec<Record>, CaptureError> {
    let mut out: Vec<Record> = Vec::new();
    let mut ids: BTreeMap<i64, usize> = BTreeMap::new();
    let lines = lines(text)?;
    let defined: BTreeMap<i64, usize> = lines.iter().map(|(n, l)| (l.id, *n)).rev().collect();
    let graphs = lines.first().map_or(0, |(_, l)| l.also.len());
    for (line, read) in lines {
        if read.also.len() != graphs {
            let n = read.also.len();
            let message = format!("sizes of {n} other graphs, but the first line has {graphs}");
            return Err(CaptureError::Record { line, message });
        }
        let id = read.id;
        let names = Names {
            line,
            name: &read.name,
            own: id,
            before: &ids,
            defined: &defined,
        };
        if id < 0 || ids.contains_key(&id) {
            let what = match id < 0 {
                true => "negative id",
                false => "used by an earlier line",
            };
            return Err(names.error("id", id, what));
        }
        let references = references(&read, &names, &out)?;
        ids.insert(id, out.len());
        out.push(record(line, read, references, &out)?);
    }
    if out.iter().all(Record::is_leaf) {
        return Err(CaptureError::Empty { records: out.len() });
    }
    Ok(out)
}

fn lines(text: &str) -> Result<Vec<(usize, Line)>, CaptureError> {
    let numbered = text.lines().enumerate();
    let filled = numbered.filter(|(_, text)| !text.trim().is_empty());
    filled
        .map(|(i, text)| {
            let wrong = |e: serde_json::Error| CaptureError::Record {
                line: i + 1,
                message: e.to_string(),
            };
            let mut line: Line = serde_json::from_str(text).map_err(wrong)?;
            // Messages repeat these names.
            for name in [&mut line.name, &mut line.dtype] {
                if let Some((at, _)) = name.char_indices().nth(MAX_NAME) {
                    name.truncate(at);
                    name.push('…');
                }
            }
            if line.op.len() > MAX_NAME {
                let message = format!("the op's name has {} bytes", line.op.len());
                return Err(CaptureError::Record {
                    line: i + 1,
                    message,
                });
            }
            Ok((i + 1, line))
        })
        .collect()
}

/// Returns the record of a line. `before` has the earlier records.
fn record(
    line: usize,
    read: Line,
    references: References,
    before: &[Record],
) -> Result<Record, CaptureError> {
    let known = DType::from_name(&read.dtype).filter(|t| !t.is_ik());
    let dtype = known.ok_or_else(|| CaptureError::ElementType {
        line,
        name: read.name.clone(),
        found: read.dtype.clone(),
    })?;
    let layout = Layout {
        ne: sizes(line, &read, dtype)?,
        nb: read.nb,
        offset: read.view_offs,
    };
    if read.src.len() > MAX_SRC {
        return Err(CaptureError::Record {
            line,
            message: format!("{} operands, more than {MAX_SRC}", read.src.len()),
        });
    }
    let References { src, root } = references;
    match root {
        Some(root) => check_bounds(line, &read.name, dtype, &layout, &before[root])?,
        None if layout.offset != 0 => {
            return Err(CaptureError::Offset {
                line,
                name: read.name,
                offset: layout.offset,
            });
        }
        None => {
            let expected = packed(dtype, layout.ne);
            if expected != read.nb {
                return Err(CaptureError::Strides {
                    line,
                    name: read.name,
                    found: read.nb,
                    expected,
                });
            }
        }
    }
    let words = words(&read.params).ok_or_else(|| CaptureError::Record {
        line,
        message: "a parameter has more than 32 bits".to_owned(),
    })?;
    let op = GgmlOp::parse(&read.op, &words);
    enough_sources(line, &read.name, &op, &src)?;
    Ok(Record {
        line,
        name: read.name,
        op,
        dtype,
        layout,
        words,
        src,
        root: root.unwrap_or(before.len()),
        is_view: root.is_some(),
        is_input: read.flags & FLAG_INPUT != 0,
        is_output: read.flags & FLAG_OUTPUT != 0,
        role: read.role,
        also: read.also,
    })
}

/// Returns the sizes of a line. Sizes are non-negative and within memory, and rows are whole blocks.
fn sizes(line: usize, read: &Line, dtype: DType) -> Result<[u64; RANK], CaptureError> {
    let wrong = |what| CaptureError::Sizes {
        line,
        name: read.name.clone(),
        ne: read.ne,
        what,
    };
    let mut ne = [0; RANK];
    for (to, &from) in ne.iter_mut().zip(&read.ne) {
        *to = u64::try_from(from).map_err(|_| wrong("a tensor with a negative size"))?;
    }
    // A size of 0 must not hide an overflow.
    let elements = ne.iter().try_fold(1_u64, |a, &n| a.checked_mul(n.max(1)));
    if elements.is_none_or(|n| n > MAX_ELEMENTS) {
        return Err(wrong("a tensor larger than any memory"));
    }
    if !ne[0].is_multiple_of(dtype.block_len()) {
        return Err(wrong("a tensor whose rows are not whole blocks"));
    }
    Ok(ne)
}

const NOBODY: i64 = -1;
/// The id by which a record refers to itself.
const ITSELF: i64 = -2;

enum Referent {
    None,
    Itself,
    Earlier(usize),
}

struct Names<'a> {
    line: usize,
    name: &'a str,
    own: i64,
    before: &'a BTreeMap<i64, usize>,
    defined: &'a BTreeMap<i64, usize>,
}

impl Names<'_> {
    fn error(&self, role: impl Into<String>, id: i64, what: impl Into<String>) -> CaptureError {
        CaptureError::Reference {
            line: self.line,
            name: self.name.to_owned(),
            role: role.into(),
            id,
            what: what.into(),
        }
    }

    fn find<R: Into<String>>(
        &self,
        role: impl Fn() -> R,
        id: i64,
    ) -> Result<Referent, CaptureError> {
        match (id, self.before.get(&id), self.defined.get(&id)) {
            (NOBODY, ..) => Ok(Referent::None),
            (ITSELF, ..) => Ok(Referent::Itself),
            (_, Some(&found), _) => Ok(Referent::Earlier(found)),
            _ if id == self.own => Ok(Referent::Itself),
            _ if id < 0 => Err(self.error(role(), id, "invalid id")),
            (_, None, Some(later)) => {
                Err(self.error(role(), id, format!("defined later, in line {later}")))
            }
            (_, None, None) => Err(self.error(role(), id, "undefined id")),
        }
    }
}

struct References {
    src: Vec<Option<usize>>,
    root: Option<usize>,
}

fn references(
    read: &Line,
    names: &Names<'_>,
    before: &[Record],
) -> Result<References, CaptureError> {
    let root = match names.find(|| "view", read.view)? {
        // A tensor that views its own memory owns the memory.
        Referent::None | Referent::Itself => None,
        Referent::Earlier(v) => Some(before[v].root),
    };
    let mut src = Vec::with_capacity(read.src.len());
    for (i, &id) in read.src.iter().enumerate() {
        let role = || format!("src[{i}]");
        match names.find(role, id)? {
            Referent::None => src.push(None),
            Referent::Earlier(s) => src.push(Some(s)),
            // `ggml_cast` makes a copy to itself.
            Referent::Itself if read.op == OpKind::Cpy.name() && i == 1 && root.is_none() => {}
            Referent::Itself => {
                let what = "the record itself; only src[1] of a CPY that is not a view may be this";
                return Err(names.error(role(), id, what));
            }
        }
    }
    let is_view = GgmlOp::parse(&read.op, &[]).family() == Family::View && root.is_some();
    let first = src.first().copied().flatten();
    if let (true, Some(first), Some(root)) = (is_view, first, root)
        && before[first].root != root
    {
        let what = format!(
            "not the owner of the view's memory (line {})",
            before[root].line
        );
        return Err(names.error("src[0]", read.src[0], what));
    }
    Ok(References { src, root })
}

fn enough_sources(
    line: usize,
    name: &str,
    op: &GgmlOp,
    src: &[Option<usize>],
) -> Result<(), CaptureError> {
    let found = src.iter().take_while(|s| s.is_some()).count();
    let wanted = match op.kind() {
        Some(kind) => kind.facts().least_sources,
        None => 0,
    };
    if found >= wanted {
        return Ok(());
    }
    Err(CaptureError::Sources {
        line,
        name: name.to_owned(),
        op: op.name().to_owned(),
        wanted,
        found,
    })
}

/// Returns 32-bit words, written as signed or unsigned numbers; `None` if a number has more bits.
fn words(params: &[i64]) -> Option<Vec<i32>> {
    let word = |&p: &i64| match u32::try_from(p) {
        Ok(word) => Some(word.cast_signed()),
        Err(_) => i32::try_from(p).ok(),
    };
    params.iter().map(word).collect()
}

fn check_bounds(
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
