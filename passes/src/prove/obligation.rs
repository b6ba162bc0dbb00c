//! Obligations: the units of the proof.

use std::ops::Range;

use tpc_ir::{Graph, Inst, Value};

use super::knowledge::Knowledge;
use super::leaves::Leaves;

/// One section or several adjacent ones, to be proved together, with the facts that the proof may use.
pub(super) struct Obligation<'a> {
    pub(super) model: &'a Graph,
    pub(super) programs: &'a Graph,
    pub(super) leaves: &'a Leaves<'a>,
    /// Per value of the model, true if it is a number.
    pub(super) numbers: &'a [bool],
    /// The facts about earlier sections.
    pub(super) known: &'a Knowledge,
    /// The model's instructions in the sections.
    pub(super) of_model: &'a [Inst],
    /// The programs' instructions in the sections.
    pub(super) of_programs: &'a [Inst],
    /// Per instruction of the model, its section.
    pub(super) section_of: &'a [usize],
    /// The sections that are proved together.
    pub(super) sections: Range<usize>,
    /// Per value of the programs, the last section that uses it.
    pub(super) last_use: &'a [usize],
}

impl Obligation<'_> {
    /// True if the model defines a value in these sections.
    pub(super) fn is_internal(&self, v: Value) -> bool {
        let section = self.section_of[self.model.value(v).def.0.index()];
        self.sections.contains(&section)
    }

    /// True if a value of the programs is used in a later section, or by the caller.
    pub(super) fn is_live_out(&self, v: Value) -> bool {
        self.last_use[v.index()] >= self.sections.end
    }
}
