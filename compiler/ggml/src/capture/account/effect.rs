use crate::capture::record::Record;
use crate::op::{Family, OpKind, WordUse};

/// A field of a capture's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `id`
    Id,
    /// `name`
    Name,
    /// `op`
    Op,
    /// `type`
    Type,
    /// An element of `ne`.
    Size(usize),
    /// An element of `nb`.
    Stride(usize),
    /// An element of `params`.
    Word(usize),
    /// An element of `src`.
    Source(usize),
    /// `view`
    View,
    /// `view_offs`
    Offset,
    /// The flag for a tensor that the caller fills.
    InputFlag,
    /// The flag for a tensor that the caller reads.
    OutputFlag,
    /// Any other flag.
    OtherFlag,
}

/// The use of a record in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// True if an op or the caller reads the record, or a view of its memory.
    pub is_read: bool,
    /// True for an input, with or without the flag.
    pub is_input: bool,
    /// True for a result, with or without the flag.
    pub is_result: bool,
}

/// Returns why a change of the field leaves the graph unchanged; `None` if the field matters.
pub fn without_effect(t: &Record, field: Field, used: Use) -> Option<&'static str> {
    if t.is_empty() {
        return Some("an empty tensor needs no computation");
    }
    let looks = t.is_pure_view() || (t.is_leaf() && t.is_view);
    if !used.is_read && (looks || t.is_leaf()) {
        return Some("the tensor is never read");
    }
    match field {
        Field::Id => Some("ids only name references"),
        Field::Name => Some("names are only labels"),
        Field::Op if looks => Some("strides and offset define a view"),
        Field::Op if t.op.family() == Family::Copy => Some("all copies have the same effect"),
        Field::Stride(axis) if t.ne()[axis] == 1 => Some("a stride along one index"),
        Field::Stride(0) if t.ne()[0] == t.dtype.block_len() => Some("a stride along one block"),
        Field::Word(0) if t.op.is(OpKind::SsmScan) || t.op.is(OpKind::GatedDeltaNet) => {
            Some("0 and 1 both stand for one state")
        }
        Field::Word(i) => match t.op.word_use(i) {
            WordUse::Ignored(why) => Some(why),
            WordUse::Read | WordUse::Unknown => None,
        },
        Field::Source(_) if looks => Some("`view` names the viewed memory"),
        Field::View => Some("any view names its memory"),
        Field::OtherFlag => Some("training and scheduling use other flags"),
        Field::InputFlag if !t.is_leaf() || t.is_view => Some("an op computes the tensor"),
        Field::InputFlag if used.is_input => Some("the tensor's use shows that it is an input"),
        Field::OutputFlag if t.is_leaf() => Some("the caller already has the leaf"),
        Field::OutputFlag if t.writes() => Some("a write to a leaf is the leaf's new content"),
        Field::OutputFlag if used.is_result => Some("only the caller reads the tensor"),
        _ => None,
    }
}
