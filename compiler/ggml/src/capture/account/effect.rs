//! The fields of a record that have no effect on the computation.

use crate::capture::record::Record;
use crate::op::{Family, OpKind, WordUse};

/// A field of a line of a capture.
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
    /// The bit of `flags` that marks a tensor filled by the caller.
    InputFlag,
    /// The bit of `flags` that marks a tensor read by the caller.
    OutputFlag,
    /// Any other bit of `flags`.
    OtherFlag,
}

/// The use of a record in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// True if an op or the caller reads the record. For an owner of memory, a read of its views counts too.
    pub is_read: bool,
    /// True if it is an input, marked or not.
    pub is_input: bool,
    /// True if it is a result, marked or not.
    pub is_result: bool,
}

/// Returns the reason why a field of a record may change without a change of the graph, or `None` for a field that
/// matters.
pub fn without_effect(t: &Record, field: Field, used: Use) -> Option<&'static str> {
    if t.is_empty() {
        return Some("a tensor without elements computes nothing");
    }
    let looks = t.is_pure_view() || (t.is_leaf() && t.is_view);
    if !used.is_read && (looks || t.is_leaf()) {
        return Some("nothing reads it");
    }
    match field {
        Field::Id => Some("ids are names for references"),
        Field::Name => Some("names are for people"),
        Field::Op if looks => Some("its strides and offset say what a view is"),
        Field::Op if t.op.family() == Family::Copy => Some("copies are alike"),
        Field::Stride(axis) if t.ne()[axis] == 1 => Some("a stride along one index"),
        Field::Stride(0) if t.ne()[0] == t.dtype.block_len() => Some("a stride along one block"),
        Field::Word(0) if t.op.is(OpKind::SsmScan) || t.op.is(OpKind::GatedDeltaNet) => {
            Some("0 and 1 both stand for one state")
        }
        Field::Word(i) => match t.op.word_use(i) {
            WordUse::Ignored(why) => Some(why),
            WordUse::Read | WordUse::Unknown => None,
        },
        Field::Source(_) if looks => Some("`view` says which memory a view looks into"),
        Field::View => Some("any view of a memory names it"),
        Field::OtherFlag => Some("training and scheduling have flags of their own"),
        Field::InputFlag if !t.is_leaf() || t.is_view => Some("an op computes it"),
        Field::InputFlag if used.is_input => Some("its use says that it is an input"),
        Field::OutputFlag if t.is_leaf() => Some("the caller has it already"),
        Field::OutputFlag if t.writes() => Some("what is written to a leaf is its new content"),
        Field::OutputFlag if used.is_result => Some("nothing else reads it"),
        _ => None,
    }
}
