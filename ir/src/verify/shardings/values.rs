use super::{Faults, ShardingRule};
use crate::graph::{Graph, ValueData};
use crate::op::Op;
use crate::sharding::{AxisTree, ClassRef, Unreduced, granule_intervals};

pub(super) fn check(graph: &Graph, data: &ValueData, faults: &mut Faults<'_>) {
    if let Err(detail) = trees(graph, data) {
        faults.add(ShardingRule::Tree, &detail);
        return;
    }
    let sharding = &data.sharding;
    if sharding.is_split() && sharding.unreduced != Unreduced::None {
        let detail = "is both split and unreduced";
        faults.add(ShardingRule::SplitAndUnreduced, detail);
    }
    if let Unreduced::OwnerMasked(c) = sharding.unreduced
        && c.index() >= graph.classes.len()
    {
        let detail = format!("is masked by the owners of {c}, which does not exist");
        faults.add(ShardingRule::Tree, &detail);
    }
    if is_split_twice(data) {
        let detail = "is split twice: each device would hold only the intersection of two ranges";
        faults.add(ShardingRule::SplitTwice, detail);
    }
    granule(graph, data, faults);
    if let Err((rule, detail)) = parts(graph, data) {
        faults.add(rule, &detail);
    }
}

fn trees(graph: &Graph, data: &ValueData) -> Result<(), String> {
    for (axis, tree) in data.sharding.axes.iter().enumerate() {
        let Some(tree) = tree else { continue };
        references(graph, tree).map_err(|why| format!("has `{tree}` on axis {axis}, but {why}"))?;
        let size = &data.ty.dims[axis];
        if tree.size().as_ref() != Some(size) {
            return Err(format!("has `{tree}` on axis {axis} of size {size}"));
        }
    }
    Ok(())
}

fn references(graph: &Graph, tree: &AxisTree) -> Result<(), String> {
    match tree {
        AxisTree::Product(k) | AxisTree::Sum(k) => k.iter().try_for_each(|t| references(graph, t)),
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
                    "{} does not divide the size {} of {}",
                    c.div, class.size, c.class
                ));
            }
            let indices = class.size / c.div;
            if *size != indices {
                return Err(format!(
                    "{c} has {indices} indices, but the leaf has {size}"
                ));
            }
            Ok(())
        }
    }
}

fn is_split_twice(data: &ValueData) -> bool {
    let trees = || data.sharding.axes.iter().flatten();
    let classes: usize = trees().map(|t| classes_per_term(t)).sum();
    trees().count() > 1 && classes > 1 || trees().any(|t| classes_per_term(t) > 1)
}

fn classes_per_term(tree: &AxisTree) -> usize {
    match tree {
        AxisTree::Leaf { split, .. } => usize::from(split.is_some()),
        AxisTree::Product(k) => k.iter().map(classes_per_term).sum(),
        AxisTree::Sum(k) => k.iter().map(classes_per_term).max().unwrap_or(0),
    }
}

fn granule(graph: &Graph, data: &ValueData, faults: &mut Faults<'_>) {
    let granule = data.sharding.granule;
    if granule == 1 {
        return;
    }
    let op = &graph.inst(data.def.0).op;
    let is_split_weight = matches!(op, Op::Weight(_)) && data.sharding.axes[0].is_some();
    if !is_split_weight {
        let detail = format!("has storage granule {granule}, but is not a weight split on axis 0");
        faults.add(ShardingRule::Granule, &detail);
        return;
    }
    let dtype = data.ty.dtype;
    let (block, least) = (dtype.block_len(), dtype.granule());
    if granule == 0 || !block.is_multiple_of(granule) || !granule.is_multiple_of(least) {
        let blocks = match least == block {
            true => format!("blocks of {block}"),
            false => format!("blocks of {block} in parts of {least}"),
        };
        let detail = format!("has storage granule {granule}, but {dtype} has {blocks}");
        faults.add(ShardingRule::Granule, &detail);
    }
}

fn parts(graph: &Graph, data: &ValueData) -> Result<(), (ShardingRule, String)> {
    let devices = graph.ranks(data.place);
    let mut classes: Vec<ClassRef> = Vec::new();
    let trees = data.sharding.axes.iter().flatten();
    trees.for_each(|t| t.classes(&mut classes));
    for c in classes {
        let ranges = graph.class(c.class).ranges.len();
        if ranges != devices {
            let class = c.class;
            let detail = format!("is split by {class} into {ranges} ranges for {devices} devices");
            return Err((ShardingRule::Tree, detail));
        }
    }
    let dtype = data.ty.dtype;
    let block = dtype.block_len();
    let Some(tree) = &data.sharding.axes[0] else {
        return Ok(());
    };
    let granule = data.sharding.granule;
    if block == 1 || granule == block {
        return Ok(());
    }
    for rank in 0..devices {
        if granule != 1 {
            // A device that cuts blocks of a row must hold one run of the row.
            let held = tree.intervals(&graph.classes, rank);
            let stored = held.map(|held| granule_intervals(&held, granule));
            if stored.is_none_or(|stored| stored.len() > 1) {
                let detail = format!("is held by rank {rank} in several parts of {dtype} blocks");
                return Err((ShardingRule::Blocks, detail));
            }
            continue;
        }
        let whole = tree.intervals(&graph.classes, rank).is_some_and(|held| {
            let is_whole = |n: u64| n.is_multiple_of(block);
            held.iter().all(|r| is_whole(r.start) && is_whole(r.len))
        });
        if !whole {
            let detail = format!("is held by rank {rank} in parts of {dtype} blocks of {block}");
            return Err((ShardingRule::Blocks, detail));
        }
    }
    Ok(())
}
