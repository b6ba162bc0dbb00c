use std::collections::{HashMap, HashSet};

use super::error::{VerifyError, VerifyErrorKind as Kind};
use crate::dims::Dim;
use crate::entity::{Class, Group, Value};
use crate::graph::{Graph, MAX_LAYER, Output, ValueData};
use crate::op::{Attr, AttrReader, Op};
use crate::place::Place;
use crate::sharding::{AxisTree, ClassData, ClassRef, Sharding, Unreduced};
use crate::text::Entity;

/// Checks TPC0220 to TPC0222, which the other checks rely on.
pub(super) fn handles(graph: &Graph, errors: &mut Vec<VerifyError>) {
    let mut dangling = |referent: Entity, entity: Entity| {
        let exists = match referent {
            Entity::Graph => true,
            Entity::Device(d) => d.index() < graph.devices.len(),
            Entity::Group(g) => g.index() < graph.groups.len(),
            Entity::Class(c) => c.index() < graph.classes.len(),
            Entity::Inst(i) => i.index() < graph.insts().len(),
            Entity::Value(v) => v.index() < graph.values().len(),
            Entity::Output(i) => i < graph.outputs.len(),
        };
        if !exists {
            errors.push(VerifyError::new(Kind::Dangling { referent }, entity));
        }
    };
    for (i, group) in graph.groups.iter().enumerate() {
        for &device in &group.devices {
            dangling(Entity::Device(device), Entity::Group(Group::new(i)));
        }
    }
    for (value, data) in graph.values() {
        let entity = Entity::Value(value);
        match data.place {
            Place::Host => {}
            Place::Device(d) => dangling(Entity::Device(d), entity),
            Place::Group(g) => dangling(Entity::Group(g), entity),
        }
        for class in classes(&data.sharding) {
            dangling(Entity::Class(class), entity);
        }
    }
    for (inst, data) in graph.insts() {
        for &operand in &data.operands {
            dangling(Entity::Value(operand), Entity::Inst(inst));
        }
    }
    for (i, output) in graph.outputs.iter().enumerate() {
        dangling(Entity::Value(output.value()), Entity::Output(i));
        if let Output::State { state, .. } = output {
            dangling(Entity::Value(*state), Entity::Output(i));
        }
    }
    definitions(graph, errors);
}

fn classes(sharding: &Sharding) -> Vec<Class> {
    let mut refs = Vec::new();
    for tree in sharding.axes.iter().flatten() {
        tree.classes(&mut refs);
    }
    let mut out: Vec<Class> = refs.iter().map(|r| r.class).collect();
    match sharding.unreduced {
        Unreduced::None | Unreduced::Partial => {}
        Unreduced::OwnerMasked(class) => out.push(class),
    }
    out
}

fn definitions(graph: &Graph, errors: &mut Vec<VerifyError>) {
    let mut defined = vec![false; graph.values().len()];
    for (inst, data) in graph.insts() {
        let entity = Entity::Inst(inst);
        for &operand in &data.operands {
            if defined.get(operand.index()) == Some(&false) {
                errors.push(VerifyError::new(
                    Kind::UsedBeforeDefined { operand },
                    entity,
                ));
            }
        }
        for (i, &value) in data.results.iter().enumerate() {
            let known = defined.get_mut(value.index());
            let fresh = known.is_some_and(|d| !std::mem::replace(d, true));
            if !fresh || graph.value(value).def != (inst, i) {
                errors.push(VerifyError::new(Kind::BackReference { value }, entity));
            }
        }
    }
}

pub(super) fn check(graph: &Graph, errors: &mut Vec<VerifyError>) {
    outputs(graph, errors);
    state_names(graph, errors);
    for (i, group) in graph.groups.iter().enumerate() {
        let entity = Entity::Group(Group::new(i));
        if group.devices.is_empty() {
            errors.push(VerifyError::new(Kind::EmptyGroup, entity));
        }
        let mut seen = HashSet::new();
        for &device in group.devices.iter().filter(|&&d| !seen.insert(d)) {
            errors.push(VerifyError::new(Kind::RepeatedDevice { device }, entity));
        }
    }
    for (i, class) in graph.classes.iter().enumerate() {
        ranges(class, Entity::Class(Class::new(i)), errors);
    }
    let mut miscounted = HashSet::new();
    for (value, data) in graph.values() {
        ranks(graph, value, data, &mut miscounted, errors);
        trees(graph, value, data, errors);
    }
    let mut beyond = HashSet::new();
    for (inst, data) in graph.insts() {
        let layer = data.layer.filter(|&l| l > MAX_LAYER && beyond.insert(l));
        if let Some(layer) = layer {
            errors.push(VerifyError::new(Kind::Layer { layer }, Entity::Inst(inst)));
        }
    }
    // Layers and devices repeat the same ops, so each is checked once.
    let mut expressible = HashSet::new();
    let mut last = None;
    for (inst, data) in graph.insts() {
        if last == Some(&data.op) || expressible.contains(&data.op) {
            continue;
        }
        if survives_text(&data.op) {
            expressible.insert(&data.op);
            last = Some(&data.op);
        } else {
            let op = data.op.name();
            errors.push(VerifyError::new(Kind::OpText { op }, Entity::Inst(inst)));
        }
    }
}

fn outputs(graph: &Graph, errors: &mut Vec<VerifyError>) {
    if graph.outputs.is_empty() {
        errors.push(VerifyError::new(Kind::NoOutputs, Entity::Graph));
    }
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut updates: HashMap<Value, usize> = HashMap::new();
    for (i, output) in graph.outputs.iter().enumerate() {
        let mut error = |kind| errors.push(VerifyError::new(kind, Entity::Output(i)));
        match output {
            Output::Named(name, _) => {
                let first = *names.entry(name).or_insert(i);
                if first != i {
                    let name = name.clone();
                    error(Kind::OutputName { name, first });
                }
            }
            &Output::State { state, value } => {
                if !matches!(graph.def_op(state), Op::State(_)) {
                    error(Kind::NotAState { value: state });
                    continue;
                }
                let first = *updates.entry(state).or_insert(i);
                if first != i {
                    error(Kind::UpdatedTwice { state, first });
                }
                let (old, new) = (graph.value(state), graph.value(value));
                let differences = [
                    ("type", old.ty != new.ty),
                    ("place", old.place != new.place),
                    ("sharding", old.sharding != new.sharding),
                ];
                for (what, _) in differences.into_iter().filter(|d| d.1) {
                    error(Kind::StateChanges { state, value, what });
                }
            }
        }
    }
}

fn state_names(graph: &Graph, errors: &mut Vec<VerifyError>) {
    let mut names: HashMap<(&str, Place), Value> = HashMap::new();
    for (inst, data) in graph.insts() {
        let (Op::State(state), Some(&value)) = (&data.op, data.results.first()) else {
            continue;
        };
        let key = (state.name.as_str(), graph.value(value).place);
        let first = *names.entry(key).or_insert(value);
        if first != value {
            let name = state.name.clone();
            let kind = Kind::StateName { name, first };
            errors.push(VerifyError::new(kind, Entity::Inst(inst)));
        }
    }
}

fn ranges(class: &ClassData, entity: Entity, errors: &mut Vec<VerifyError>) {
    let mut error = |kind| errors.push(VerifyError::new(kind, entity));
    let size = class.size;
    let (mut last_start, mut covered) = (0, 0);
    let mut gap = None;
    for (rank, &range) in class.ranges.iter().enumerate() {
        let end = range.start.checked_add(range.len).filter(|&e| e <= size);
        let Some(end) = end else {
            error(Kind::ClassRange { rank, range, size });
            return;
        };
        if range.len == 0 {
            continue;
        }
        if range.start < last_start {
            error(Kind::ClassOrder { rank });
            return;
        }
        if range.start > covered {
            gap = gap.or(Some(covered));
        }
        last_start = range.start;
        covered = end.max(covered);
    }
    let gap = gap.or((covered < size).then_some(covered));
    if let Some(index) = gap {
        error(Kind::ClassGap { index });
    }
}

fn ranks(
    graph: &Graph,
    value: Value,
    data: &ValueData,
    reported: &mut HashSet<(Class, Group)>,
    errors: &mut Vec<VerifyError>,
) {
    let Place::Group(group) = data.place else {
        return;
    };
    for class in classes(&data.sharding) {
        let ranges = graph.class(class).ranges.len();
        let devices = graph.group(group).devices.len();
        if ranges != devices && reported.insert((class, group)) {
            let kind = Kind::ClassRanks {
                class,
                group,
                ranges,
                devices,
            };
            errors.push(VerifyError::new(kind, Entity::Value(value)));
        }
    }
}

fn trees(graph: &Graph, value: Value, data: &ValueData, errors: &mut Vec<VerifyError>) {
    for (axis, tree) in data.sharding.axes.iter().enumerate() {
        let Some(tree) = tree else { continue };
        let mut error = |kind| errors.push(VerifyError::new(kind, Entity::Value(value)));
        leaves(tree, &mut |class, found| {
            let size = graph.class(class.class).size;
            let expected = size.checked_div(class.div).map(Dim::constant);
            let exact = size.checked_rem(class.div) == Some(0);
            if !exact || expected.as_ref() != Some(found) {
                let found = found.clone();
                error(Kind::LeafSize {
                    axis,
                    class,
                    found,
                    size,
                });
            }
        });
        if !tree.is_split() {
            error(Kind::Unsplit { axis });
            continue;
        }
        let expected = tree.simplify();
        if **tree != expected {
            let found = (**tree).clone();
            error(Kind::NotNormal {
                axis,
                found,
                expected,
            });
        }
    }
}

fn leaves(tree: &AxisTree, f: &mut dyn FnMut(ClassRef, &Dim)) {
    match tree {
        AxisTree::Leaf { split: None, .. } => {}
        AxisTree::Leaf {
            size,
            split: Some(class),
        } => f(*class, size),
        AxisTree::Product(k) | AxisTree::Sum(k) => k.iter().for_each(|t| leaves(t, f)),
    }
}

fn survives_text(op: &Op) -> bool {
    let attrs = op.attrs();
    let is_nan = |(_, value): &(_, Attr)| matches!(value, Attr::Float(x) if x.is_nan());
    if attrs.iter().any(is_nan) {
        return false;
    }
    let attrs = attrs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let again = Op::parse(op.name(), AttrReader::new(attrs.collect()));
    again.is_some_and(|again| again.is_ok_and(|again| again == *op))
}
