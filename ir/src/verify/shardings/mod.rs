//! Checks that each sharding is well formed, and that an op's shardings satisfy its rule.
//!
//! The check is independent of the planner. Except for leaves, copies and collectives, it solves the rule's equations
//! on trees labelled with the shardings' classes. Different labels do not unify.

mod ops;
mod roles;
mod transfers;
mod values;

pub(super) use roles::roles;

use super::error::{VerifyError, VerifyErrorKind};
use super::sharding_rule::ShardingRule;
use crate::entity::{Inst, Value};
use crate::graph::{Graph, InstData};
use crate::op::OpCategory;
use crate::place::Place;
use crate::sharding::Unreduced;
use crate::text::Entity;

pub(super) fn check(graph: &Graph, errors: &mut Vec<VerifyError>) {
    let mut sound = vec![true; graph.values().len()];
    for (v, data) in graph.values() {
        if !data.sharding.is_mirrored() || data.sharding.granule != 1 {
            let mut faults = Faults::of_value(graph, v, errors);
            values::check(graph, data, &mut faults);
            sound[v.index()] = faults.is_empty();
        }
    }
    for (inst, data) in graph.insts() {
        let on_group = |v: &Value| matches!(graph.value(*v).place, Place::Group(_));
        let all = || data.operands.iter().chain(&data.results);
        if all().any(on_group) && all().all(|v| sound[v.index()]) {
            instruction(graph, data, &mut Faults::of_inst(graph, inst, errors));
        }
    }
}

fn instruction(graph: &Graph, data: &InstData, faults: &mut Faults<'_>) {
    match data.op.category() {
        OpCategory::Stored | OpCategory::Input | OpCategory::Constant => {
            transfers::leaf(graph, data, faults);
        }
        OpCategory::Copy => transfers::copy(graph, data, faults),
        OpCategory::Collective(kind) => transfers::collective(graph, data, kind, faults),
        OpCategory::Layout
        | OpCategory::Selection
        | OpCategory::Repetition
        | OpCategory::Assembly
        | OpCategory::Update
        | OpCategory::Product
        | OpCategory::Heavy
        | OpCategory::Light => ops::check(graph, data, faults),
    }
}

struct Faults<'a> {
    errors: &'a mut Vec<VerifyError>,
    entity: Entity,
    name: &'a str,
    before: usize,
}

impl<'a> Faults<'a> {
    fn of_value(graph: &'a Graph, v: Value, errors: &'a mut Vec<VerifyError>) -> Faults<'a> {
        Faults {
            before: errors.len(),
            errors,
            entity: Entity::Value(v),
            name: &graph.value(v).name,
        }
    }

    fn of_inst(graph: &'a Graph, inst: Inst, errors: &'a mut Vec<VerifyError>) -> Faults<'a> {
        let data = graph.inst(inst);
        let first = data.results.first();
        Faults {
            before: errors.len(),
            errors,
            entity: Entity::Inst(inst),
            name: first.map_or("", |&v| graph.value(v).name.as_str()),
        }
    }

    const fn is_empty(&self) -> bool {
        self.errors.len() == self.before
    }

    /// Reports a violation; `detail` follows the entity's name.
    fn add(&mut self, rule: ShardingRule, detail: &str) {
        let detail = match self.name {
            "" => format!("it {detail}"),
            name => format!("`{name}` {detail}"),
        };
        let kind = VerifyErrorKind::Sharding { rule, detail };
        self.errors.push(VerifyError::new(kind, self.entity));
    }
}

fn is_unreduced(graph: &Graph, v: Value) -> bool {
    graph.value(v).sharding.unreduced != Unreduced::None
}
