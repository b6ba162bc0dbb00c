use std::collections::BTreeMap;

use tpc_ir::op::Weight;
use tpc_ir::resize::{Sizes, resize};
use tpc_ir::{AxisTree, ClassData, ClassRef, DType, Graph, Op, RANK, Sharding, TensorType, Value};

use super::joint::{Joint, TreeLeaf};
use super::sizes::SmallSizes;

/// The small sizes of a graph, and the map from its values to the joint graph.
struct GraphSizes<'a> {
    sizes: &'a SmallSizes<'a>,
    joint: &'a dyn Fn(Value) -> Value,
}

impl Sizes for GraphSizes<'_> {
    fn dims(&self, v: Value) -> [tpc_ir::Dim; RANK] {
        self.sizes.dims((self.joint)(v))
    }

    fn start(&self, v: Value, axis: usize, start: &tpc_ir::Dim, len: &tpc_ir::Dim) -> tpc_ir::Dim {
        self.sizes.start((self.joint)(v), axis, start, len)
    }
}

pub(super) type OtherTypes = BTreeMap<DType, DType>;

/// Copies `from` with small sizes, mirrored shardings and unchanged classes.
fn plain(from: &Graph, own: &GraphSizes<'_>, types: &OtherTypes) -> Graph {
    let mut out = from.without_insts();
    out.devices.clone_from(&from.devices);
    out.groups.clone_from(&from.groups);
    for (_, data) in from.insts() {
        let ty = |v: Value| {
            let old = from.value(v).ty.dtype;
            let new = match data.op {
                Op::Weight(Weight { .. }) => types.get(&old).copied().unwrap_or(old),
                _ => old,
            };
            TensorType {
                dtype: new,
                dims: own.dims(v),
            }
        };
        let op = resize(from, data, own);
        let places: Vec<_> = data.results.iter().map(|&v| from.value(v).place).collect();
        let made = out.push_at(
            op,
            data.operands.clone(),
            data.results.iter().map(|&v| ty(v)).collect(),
            &places,
            data.layer,
        );
        let made = out.inst(made).results.clone();
        for (&old, new) in data.results.iter().zip(made) {
            out.value_mut(new).name.clone_from(&from.value(old).name);
        }
    }
    out.outputs.clone_from(&from.outputs);
    out
}

pub(super) fn model(from: &Graph, sizes: &SmallSizes<'_>, types: &OtherTypes) -> Graph {
    let joint = |v| v;
    let own = GraphSizes {
        sizes,
        joint: &joint,
    };
    plain(from, &own, types)
}

pub(super) fn shrink_sharded(
    from: &Graph,
    joint: &Joint,
    sizes: &SmallSizes<'_>,
    types: &OtherTypes,
) -> Graph {
    let at = |v: Value| joint.sharded[v.index()];
    let own = GraphSizes { sizes, joint: &at };
    let mut out = plain(from, &own, types);
    out.classes = (0..from.classes.len())
        .map(|i| {
            let class = tpc_ir::Class::new(i);
            let (size, ranges) = sizes.class(class, from);
            ClassData {
                name: from.class(class).name.clone(),
                size,
                ranges,
            }
        })
        .collect();
    for (v, data) in from.values() {
        let axes = std::array::from_fn(|axis| {
            let old = data.sharding.axes[axis].as_deref()?;
            let mut leaves = joint.trees[v.index()][axis].iter();
            Some(Box::new(tree(old, &mut leaves, sizes, &out.classes)))
        });
        out.value_mut(v).sharding = Sharding {
            axes,
            unreduced: data.sharding.unreduced,
            granule: data.sharding.granule,
        };
    }
    out
}

/// Builds a sharding's tree with small leaves. The part that a class reference omits becomes the rest of the class.
fn tree(
    old: &AxisTree,
    leaves: &mut std::slice::Iter<'_, TreeLeaf>,
    sizes: &SmallSizes<'_>,
    classes: &[ClassData],
) -> AxisTree {
    match old {
        AxisTree::Leaf { size, split } => {
            let new = leaves.next().and_then(|l| sizes.size(l.var));
            let size = new.unwrap_or_else(|| size.clone());
            let split = split.map(|c| ClassRef {
                div: size.as_const().map_or(c.div, |n| {
                    classes[c.class.index()].size.checked_div(n).unwrap_or(1)
                }),
                ..c
            });
            AxisTree::Leaf { size, split }
        }
        AxisTree::Product(k) => {
            let parts = k.iter().map(|t| tree(t, leaves, sizes, classes));
            AxisTree::Product(parts.collect())
        }
        AxisTree::Sum(k) => {
            let parts = k.iter().map(|t| tree(t, leaves, sizes, classes));
            AxisTree::Sum(parts.collect())
        }
    }
}
