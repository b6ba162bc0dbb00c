//! Shardings: every value's sharding is well formed, and every op's rule holds for those of its operands and results.
//!
//! The check knows nothing of how a plan was found. It runs the rule's equations again on trees whose leaves carry what
//! the shardings say of them: two sides that say different things cannot be unified.

use super::codes;
use super::error::{VerifyError, VerifyErrorKind};
use crate::code::Code;
use crate::entity::{Class, Inst, Value};
use crate::factor::{Axes, Label, Space, Var, solve};
use crate::graph::{Graph, InstData};
use crate::op::{ActiveRoles, Op, OperandState, Role, Rule, unreduced_result};
use crate::place::Place;
use crate::sharding::{AxisTree, ClassRef, Unreduced};
use crate::text::Entity;
use crate::types::TensorType;

/// Checks every value and instruction on a group.
pub(super) fn check(graph: &Graph, errors: &mut Vec<VerifyError>) {
    let mut sound = vec![true; graph.values().len()];
    for (v, data) in graph.values() {
        if !data.sharding.is_mirrored() || data.sharding.granule != 1 {
            let before = errors.len();
            value(graph, v, errors);
            sound[v.index()] = errors.len() == before;
        }
    }
    for (inst, data) in graph.insts() {
        let on_group = |v: &Value| matches!(graph.value(*v).place, Place::Group(_));
        let all = || data.operands.iter().chain(&data.results);
        if all().any(on_group) && all().all(|v| sound[v.index()]) {
            instruction(graph, inst, data, errors);
        }
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $code:ident, $help:literal;)*) => {
        /// An invariant of shardings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ShardingRule { $($(#[$doc])* $variant,)* }

        impl ShardingRule {
            /// Its code.
            pub const fn code(self) -> &'static Code {
                match self { $(ShardingRule::$variant => &codes::$code,)* }
            }

            /// The cure.
            pub const fn help(self) -> &'static str {
                match self { $(ShardingRule::$variant => $help,)* }
            }
        }
    };
}

rules! {
    /// A tree's class references exist and its factors multiply to the axis's size.
    Tree = SHARDING_TREE, "name a declared class with a range per device, and factors that multiply to the axis's size";
    /// No value is split and a pending sum at once.
    SplitAndPending = SHARDING_SPLIT_AND_PENDING, "reduce before splitting";
    /// No term is split by two classes.
    SplitTwice = SHARDING_SPLIT_TWICE, "split one factor of each term";
    /// Only weights split on axis 0 cover blocks, those of their type.
    Cover = SHARDING_COVER, "only a weight split on axis 0 covers the blocks of its type";
    /// No device holds parts of blocks.
    Blocks = SHARDING_BLOCKS, "end ranges at blocks, or let the weight cover them";
    /// The equations of the op's rule hold.
    Equation = SHARDING_EQUATION, "operands and results must be split by the same factors";
    /// Factors that the op needs whole are whole.
    Whole = SHARDING_WHOLE, "gather the operand first, or split another factor";
    /// Norms over a split axis exchange their statistic.
    Norm = SHARDING_NORM, "use norm_stats, all_reduce and norm_apply";
    /// What an index counts along is one range, and contractions are split in all segments or none.
    Window = SHARDING_WINDOW, "split the whole of an indexed axis, and all segments of a contraction";
    /// A result's pending state is what the op makes of its operands.
    PendingResult = SHARDING_PENDING_RESULT, "state what the op makes";
    /// An op takes the pending sums of its operands.
    PendingOperand = SHARDING_PENDING_OPERAND, "all_reduce the operand first";
    /// Transfers take what they are for.
    Transfer = SHARDING_TRANSFER, "reduce pending sums, and only those, before they move";
    /// Leaves have no pending sum.
    Leaf = SHARDING_LEAF, "a leaf is whole or split";
}

fn fault(errors: &mut Vec<VerifyError>, rule: ShardingRule, entity: Entity, detail: String) {
    errors.push(VerifyError::new(
        VerifyErrorKind::Sharding { rule, detail },
        entity,
    ));
}

fn class_refs(trees: &[Option<Box<AxisTree>>]) -> Vec<ClassRef> {
    let mut refs = Vec::new();
    trees.iter().flatten().for_each(|t| t.classes(&mut refs));
    refs
}

/// The most classes that one term of a tree meets.
fn classes_per_term(tree: &AxisTree) -> usize {
    match tree {
        AxisTree::Leaf { split, .. } => usize::from(split.is_some()),
        AxisTree::Product(k) => k.iter().map(classes_per_term).sum(),
        AxisTree::Sum(k) => k.iter().map(classes_per_term).max().unwrap_or(0),
    }
}

fn tree_refs_are_sound(graph: &Graph, tree: &AxisTree) -> Result<(), String> {
    match tree {
        AxisTree::Product(k) | AxisTree::Sum(k) => {
            k.iter().try_for_each(|t| tree_refs_are_sound(graph, t))
        }
        AxisTree::Leaf { split: None, .. } => Ok(()),
        AxisTree::Leaf {
            split: Some(c),
            size,
        } => {
            let class = graph
                .classes
                .get(c.class.index())
                .ok_or_else(|| format!("{} does not exist", c.class))?;
            if c.div == 0 || !class.size.is_multiple_of(c.div) {
                return Err(format!(
                    "{} does not divide {} of size {}",
                    c.div, c.class, class.size
                ));
            }
            if *size != class.size / c.div {
                return Err(format!(
                    "{c} has {} indices, the axis {size}",
                    class.size / c.div
                ));
            }
            Ok(())
        }
    }
}

fn value(graph: &Graph, v: Value, errors: &mut Vec<VerifyError>) {
    let data = graph.value(v);
    let s = &data.sharding;
    let name = &data.name;
    for (axis, tree) in s.axes.iter().enumerate() {
        let Some(tree) = tree else { continue };
        if let Err(why) = tree_refs_are_sound(graph, tree) {
            let message = format!("axis {axis} of {v} `{name}` is `{tree}`, but {why}");
            fault(errors, ShardingRule::Tree, Entity::Value(v), message);
            return;
        }
        if tree.size().as_ref() != Some(&data.ty.dims[axis]) {
            let message = format!(
                "axis {axis} of {v} `{name}` is {} but its tree is `{tree}`",
                data.ty.dims[axis]
            );
            fault(errors, ShardingRule::Tree, Entity::Value(v), message);
            return;
        }
    }
    if s.is_split() && s.unreduced != Unreduced::None {
        let message = format!("{v} `{name}` is split and a pending sum at once");
        fault(
            errors,
            ShardingRule::SplitAndPending,
            Entity::Value(v),
            message,
        );
    }
    if let Unreduced::OwnerMasked(c) = s.unreduced
        && c.index() >= graph.classes.len()
    {
        let message = format!("{v} `{name}` is disjoint by {c}, which does not exist");
        fault(errors, ShardingRule::Tree, Entity::Value(v), message);
    }
    let met: usize = s.axes.iter().flatten().map(|t| classes_per_term(t)).sum();
    if s.axes.iter().flatten().count() > 1 && met > 1
        || s.axes.iter().flatten().any(|t| classes_per_term(t) > 1)
    {
        let message = format!(
            "{v} `{name}` is split twice: a device would hold only the crossing of two ranges"
        );
        fault(errors, ShardingRule::SplitTwice, Entity::Value(v), message);
    }
    let block = data.ty.dtype.block_len();
    let is_weight = matches!(graph.def_op(v), Op::Weight(_));
    if s.granule != 1 && (!is_weight || s.axes[0].is_none() || s.granule != block) {
        let message = format!("{v} `{name}` covers blocks of {}", s.granule);
        fault(errors, ShardingRule::Cover, Entity::Value(v), message);
    }
    let ranks = graph.ranks(data.place);
    for rank in 0..ranks {
        let short = class_refs(&s.axes)
            .into_iter()
            .find(|c| graph.class(c.class).ranges.len() != ranks);
        if let Some(c) = short {
            let message = format!(
                "{v} `{name}` is split by {} into {} ranges for {ranks} devices",
                c.class,
                graph.class(c.class).ranges.len()
            );
            fault(errors, ShardingRule::Tree, Entity::Value(v), message);
            return;
        }
        if block > 1
            && s.granule == 1
            && let Some(tree) = &s.axes[0]
        {
            let runs = tree.intervals(&graph.classes, rank);
            if runs.is_none_or(|runs| {
                runs.iter()
                    .any(|r| r.start % block != 0 || r.len % block != 0)
            }) {
                let message = format!(
                    "{v} `{name}`: rank {rank} holds parts of {} blocks of {block}",
                    data.ty.dtype
                );
                fault(errors, ShardingRule::Blocks, Entity::Value(v), message);
                return;
            }
        }
    }
}

/// What the roles of an op meet.
pub(super) struct Roles {
    pub(super) active: ActiveRoles,
    pub(super) whole: Option<String>,
    pub(super) window: Option<String>,
    pub(super) mixed: Option<String>,
}

pub(super) fn roles(space: &Space, rule: &Rule, operands: &[Axes], results: &[Axes]) -> Roles {
    let mut out = Roles {
        active: ActiveRoles::default(),
        whole: None,
        window: None,
        mixed: None,
    };
    for (role, expr) in &rule.roles {
        let Some(var) = Rule::role_var(expr, operands, results) else {
            continue;
        };
        let terms = space.terms(var);
        let split = |t: &Vec<Var>| {
            t.iter()
                .any(|&l| space.label(l).is_some_and(Label::is_split))
        };
        let hits = terms.iter().filter(|t| split(t)).count();
        if hits == 0 {
            continue;
        }
        let shown = || Some(space.describe(var));
        if hits < terms.len() && matches!(role, Role::Reduce | Role::Norm) {
            out.mixed = shown();
        }
        let class = |l: &Var| match space.label(*l) {
            Some(Label::Split(c)) => Some(c),
            _ => None,
        };
        let single = match terms.as_slice() {
            [t] => t.first().and_then(class),
            _ => None,
        };
        match role {
            Role::Whole => out.whole = shown(),
            Role::Reduce => out.active.reduce = true,
            Role::Norm => out.active.norm = true,
            Role::Gather => {
                out.active.gather = true;
                if single.is_none() {
                    out.window = shown();
                }
            }
            Role::Expert => match single {
                Some(c) if terms[0].len() == 1 => out.active.expert = Some(c.class),
                _ => {
                    out.active.expert = Some(Class::new(0));
                    out.window = shown();
                }
            },
        }
    }
    out
}

/// Whether each device holds one range of `axis` that no other holds, and all of every other axis.
fn in_parts(graph: &Graph, v: Value, axis: u64) -> bool {
    let axes = &graph.value(v).sharding.axes;
    let other = |(a, tree): (usize, &Option<Box<AxisTree>>)| a as u64 == axis || tree.is_none();
    let along = usize::try_from(axis)
        .ok()
        .and_then(|a| axes.get(a)?.as_deref());
    let Some(AxisTree::Leaf { split: Some(c), .. }) = along else {
        return false;
    };
    axes.iter().enumerate().all(other) && !graph.class(c.class).overlaps(c.div)
}

fn instruction(graph: &Graph, inst: Inst, data: &InstData, errors: &mut Vec<VerifyError>) {
    let entity = Entity::Inst(inst);
    let name = data
        .results
        .first()
        .map_or("", |&v| graph.value(v).name.as_str());
    let op = data.op.name();
    let state = |v: Value| graph.value(v).sharding.unreduced;
    let split = |v: Value| graph.value(v).sharding.is_split();
    let waiting = data
        .operands
        .iter()
        .copied()
        .find(|&v| state(v) != Unreduced::None);
    match &data.op {
        leaf if leaf.is_leaf() => {
            if state(data.results[0]) != Unreduced::None {
                let message = format!("{inst} `{op}` `{name}` is a leaf with a pending sum");
                fault(errors, ShardingRule::Leaf, entity, message);
            }
            return;
        }
        Op::Copy(_) => {
            if let Some(v) = waiting {
                let message = format!("{inst} copies {v}, whose sum is pending");
                fault(errors, ShardingRule::Transfer, entity, message);
            }
            if state(data.results[0]) != Unreduced::None {
                let message = format!("{inst} `{name}`: a copy has no pending sum");
                fault(errors, ShardingRule::Transfer, entity, message);
            }
            return;
        }
        Op::AllReduce(_) => {
            if waiting.is_none()
                || data
                    .results
                    .iter()
                    .any(|&v| state(v) != Unreduced::None || split(v))
            {
                let message =
                    format!("{inst} all_reduce `{name}` takes a pending sum to a mirrored value");
                fault(errors, ShardingRule::Transfer, entity, message);
            }
            return;
        }
        Op::AllGather(_) | Op::ReduceScatter(_) | Op::AllToAll(_) => {
            let scatters = matches!(data.op, Op::ReduceScatter(_));
            let parts = match &data.op {
                Op::AllGather(op) => {
                    let whole = |&v: &Value| graph.value(v).sharding.is_mirrored();
                    data.results.iter().all(whole) && in_parts(graph, data.operands[0], op.axis)
                }
                Op::ReduceScatter(op) => in_parts(graph, data.results[0], op.axis),
                _ => true,
            };
            let on_group = matches!(graph.value(data.operands[0]).place, Place::Group(_));
            let bad = scatters != waiting.is_some()
                || data.results.iter().any(|&v| state(v) != Unreduced::None)
                || on_group && !parts;
            if bad {
                let message = format!(
                    "{inst} {op} `{name}`: pending sums go through all_reduce and reduce_scatter only, and parts are ranges of its axis"
                );
                fault(errors, ShardingRule::Transfer, entity, message);
            }
            return;
        }
        _ => {}
    }
    let all = || data.operands.iter().chain(&data.results).copied();
    if !all().any(|v| split(v) || state(v) != Unreduced::None) {
        return;
    }
    let types = |vs: &[Value]| {
        vs.iter()
            .map(|&v| &graph.value(v).ty)
            .collect::<Vec<&TensorType>>()
    };
    let rule = data.op.rule(&types(&data.operands), &types(&data.results));
    let mut space = Space::new();
    let mut import = |vs: &[Value]| -> Vec<Axes> {
        vs.iter()
            .map(|&v| {
                let d = graph.value(v);
                std::array::from_fn(|a| space.import(&d.sharding.tree(a, &d.ty.dims[a])))
            })
            .collect()
    };
    let (operands, results) = (import(&data.operands), import(&data.results));
    if all().any(split)
        && let Err((i, cut)) = solve(&mut space, &rule, &operands, &results)
    {
        let message = format!(
            "{inst} `{op}` `{name}`: equation {} of its rule fails: {cut}",
            i + 1
        );
        fault(errors, ShardingRule::Equation, entity, message);
        return;
    }
    let r = roles(&space, &rule, &operands, &results);
    if let Some(tree) = r.whole {
        let message = format!("{inst} `{op}` `{name}` needs a factor whole: {tree}");
        fault(errors, ShardingRule::Whole, entity, message);
        return;
    }
    if r.active.norm {
        let message = format!("{inst} `{op}` `{name}` normalises over a split axis");
        fault(errors, ShardingRule::Norm, entity, message);
        return;
    }
    if let Some(tree) = r.window.or(r.mixed) {
        let message =
            format!("{inst} `{op}` `{name}`: {tree} is not one range of one factor on each device");
        fault(errors, ShardingRule::Window, entity, message);
        return;
    }
    let states: Vec<OperandState> = data
        .operands
        .iter()
        .map(|&v| OperandState {
            unreduced: state(v),
            split: split(v),
        })
        .collect();
    match unreduced_result(&rule, &states, r.active) {
        Err(bad) => {
            let which: Vec<String> = bad.iter().map(|&i| data.operands[i].to_string()).collect();
            let message = format!(
                "{inst} `{op}` `{name}` cannot take the pending sum of {}",
                which.join(", ")
            );
            fault(errors, ShardingRule::PendingOperand, entity, message);
        }
        Ok(expected) => {
            for &v in &data.results {
                if state(v) != expected {
                    let show = |p| match p {
                        Unreduced::None => "whole".to_owned(),
                        Unreduced::Partial => "a pending sum".to_owned(),
                        Unreduced::OwnerMasked(c) => format!("disjoint by {c}"),
                    };
                    let message = format!(
                        "{inst} `{op}` `{name}`: {v} is {}, the op makes it {}",
                        show(state(v)),
                        show(expected)
                    );
                    fault(errors, ShardingRule::PendingResult, entity, message);
                }
            }
        }
    }
}
