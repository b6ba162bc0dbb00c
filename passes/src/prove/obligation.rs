use std::ops::Range;

use tpc_ir::{Graph, Inst, Value};

use super::knowledge::Knowledge;
use super::leaves::Leaves;

pub(super) struct Obligation<'a> {
    pub(super) model: &'a Graph,
    pub(super) programs: &'a Graph,
    pub(super) leaves: &'a Leaves<'a>,
    /// True, per value of the model, if the value is finite.
    pub(super) numbers: &'a [bool],
    pub(super) known: &'a Knowledge,
    pub(super) of_model: &'a [Inst],
    pub(super) of_programs: &'a [Inst],
    pub(super) section_of: &'a [usize],
    pub(super) sections: Range<usize>,
    pub(super) last_use: &'a [usize],
}

impl Obligation<'_> {
    pub(super) fn is_internal(&self, v: Value) -> bool {
        let section = self.section_of[self.model.value(v).def.0.index()];
        self.sections.contains(&section)
    }

    pub(super) fn is_live_out(&self, v: Value) -> bool {
        self.last_use[v.index()] >= self.sections.end
    }
}
