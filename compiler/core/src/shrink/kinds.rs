//! Kinds of sharded layers. Layers of a kind have equal ops, types, places, shardings and live-out values.

use tpc_ir::{Class, Graph, Inst, Interval, Op, Place, Sharding, TensorType, Value};
use tpc_passes::layers::{Shape, View, shape};

#[derive(Clone, Debug, PartialEq, Eq)]
struct ValueShape {
    ty: TensorType,
    place: Place,
    sharding: Sharding,
    live_out: bool,
}

/// A kind of layer. Names have no effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind {
    shape: Shape<Op, ValueShape>,
    /// Size and ranges of each class, by number.
    classes: Vec<(u64, Vec<Interval>)>,
}

struct ShardedView<'a> {
    graph: &'a Graph,
    live_out: &'a [bool],
    classes: Vec<Class>,
}

impl ShardedView<'_> {
    fn value(&mut self, v: Value, live_out: bool) -> ValueShape {
        let data = self.graph.value(v);
        let classes = &mut self.classes;
        let sharding = data.sharding.rename_classes(&mut |c| {
            let known = classes.iter().position(|&k| k == c);
            Class::new(known.unwrap_or_else(|| {
                classes.push(c);
                classes.len() - 1
            }))
        });
        ValueShape {
            ty: data.ty.clone(),
            place: data.place,
            sharding,
            live_out,
        }
    }
}

impl View for ShardedView<'_> {
    type Op = Op;
    type Value = ValueShape;

    fn op(&mut self, op: &Op) -> Op {
        op.without_tensor_name()
    }

    fn external(&mut self, v: Value) -> ValueShape {
        self.value(v, false)
    }

    fn result(&mut self, v: Value) -> ValueShape {
        self.value(v, self.live_out[v.index()])
    }
}

/// Computes the kind of a layer with these instructions, and the layer's classes by number. `live_out` comes from
/// [`tpc_passes::layers::live_out`].
pub(super) fn kind_of(graph: &Graph, insts: &[Inst], live_out: &[bool]) -> (Kind, Vec<Class>) {
    let mut view = ShardedView {
        graph,
        live_out,
        classes: Vec::new(),
    };
    let shape = shape(graph, insts, &mut view);
    let classes = view.classes;
    let ranges = |&c: &Class| (graph.class(c).size, graph.class(c).ranges.clone());
    let kind = Kind {
        shape,
        classes: classes.iter().map(ranges).collect(),
    };
    (kind, classes)
}
