use std::collections::BTreeMap;

use tpc_ggml::op::shapes::{Node, Shape};
use tpc_ggml::op::{Family, OpKind};

use crate::fields::Fields;
use crate::limits::Limits;
use crate::protocol::TENSOR_BYTES;
use crate::refusal::Refusal;
use crate::tensor::Tensor;

/// `GGML_TENSOR_FLAG_COMPUTE`.
const FLAG_COMPUTE: i32 = 16;

/// A client's graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The nodes, the sources, and the tensors that sources view.
    pub tensors: Vec<Tensor>,
    /// The positions of the tensors to compute, in execution order.
    pub nodes: Vec<usize>,
    positions: BTreeMap<u64, usize>,
}

impl Graph {
    /// Reads a graph from the fields after the device number.
    pub(crate) fn read(from: &mut Fields<'_>, limits: &Limits) -> Result<Graph, Refusal> {
        let n_nodes = count(from, 8, limits)?;
        let mut ids = Vec::new();
        for _ in 0..n_nodes {
            ids.push(from.u64()?);
        }
        let n_tensors = count(from, TENSOR_BYTES, limits)?;
        let mut tensors = Vec::new();
        let mut positions = BTreeMap::new();
        for position in 0..n_tensors {
            let tensor = Tensor::required(from)?;
            if positions.insert(tensor.id, position).is_some() {
                return Err(wrong(&tensor.name, "occurs twice"));
            }
            tensors.push(tensor);
        }
        from.end()?;
        let find = |id: &u64| positions.get(id).copied().ok_or_else(missing);
        let mut nodes = ids.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        // The client clears the flag of nodes that this device or this batch does not need.
        nodes.retain(|&node| tensors[node].flags & FLAG_COMPUTE != 0);
        let graph = Graph {
            tensors,
            nodes,
            positions,
        };
        graph.check()?;
        Ok(graph)
    }

    /// Returns the position of the tensor with this id; `None` for id 0.
    pub fn position(&self, id: u64) -> Option<usize> {
        self.positions.get(&id).copied()
    }

    /// Returns the owner of a tensor's memory: the root of the chain of views.
    pub fn owner(&self, position: usize) -> usize {
        let of = self.tensors.get(position).map_or(0, |t| t.view_src);
        let Some(mut at) = self.position(of) else {
            return position;
        };
        // `check` has excluded cycles and long chains.
        while let Some(next) = self.position(self.tensors[at].view_src) {
            at = next;
        }
        at
    }

    /// Returns the sources of a tensor, up to the last source that is present.
    pub fn sources(&self, position: usize) -> Vec<Option<usize>> {
        let mut out: Vec<Option<usize>> = self.tensors[position]
            .src
            .iter()
            .map(|&id| self.position(id))
            .collect();
        while out.last() == Some(&None) {
            out.pop();
        }
        out
    }

    /// Checks that references exist, that chains of views end, and that sources are computed before their uses.
    fn check(&self) -> Result<(), Refusal> {
        for t in &self.tensors {
            let mut named = t.src.iter().chain([&t.view_src]).filter(|id| **id != 0);
            if named.any(|id| !self.positions.contains_key(id)) {
                return Err(wrong(&t.name, "has a source that is not in the message"));
            }
            let mut at = t;
            for step in 0.. {
                let Some(next) = self.position(at.view_src) else {
                    break;
                };
                if step > 8 {
                    return Err(wrong(&t.name, "has too long a chain of views"));
                }
                at = &self.tensors[next];
            }
        }
        self.check_order()?;
        for &node in &self.nodes {
            self.check_op(node)?;
            self.check_view(node)?;
        }
        Ok(())
    }

    /// Checks types, sizes and parameters, because the graph did not pass through ggml's builders.
    fn check_op(&self, node: usize) -> Result<(), Refusal> {
        let t = &self.tensors[node];
        let shape = |t: &Tensor| Shape {
            dtype: t.dtype,
            ne: t.ne,
            nb: t.nb,
        };
        let sources = self.sources(node).into_iter();
        let sources: Vec<Option<Shape>> = sources
            .map(|at| at.map(|at| shape(&self.tensors[at])))
            .collect();
        let rule = Node {
            op: t.op,
            params: &t.params,
            result: shape(t),
            sources: &sources,
        };
        let refused = |why| Refusal::Graph(format!("{} \"{}\": {why}", t.op, t.name));
        rule.check().map_err(refused)
    }

    /// Checks that a view is within the memory that it views.
    fn check_view(&self, node: usize) -> Result<(), Refusal> {
        let (t, of) = (&self.tensors[node], &self.tensors[self.owner(node)]);
        // A device without a share of a split tensor gets empty views at the offsets of the others.
        if t.buffer == 0 || of.buffer == 0 || t.id == of.id || t.bytes() == Some(0) {
            return Ok(());
        }
        let end = |t: &Tensor| t.data.checked_add(t.bytes()?);
        let is_within = t.buffer == of.buffer && t.data >= of.data && end(t) <= end(of);
        match is_within {
            true => Ok(()),
            false => Err(wrong(
                &t.name,
                &format!("is a view beyond the memory of \"{}\"", of.name),
            )),
        }
    }

    fn check_order(&self) -> Result<(), Refusal> {
        let mut turn = vec![None; self.tensors.len()];
        for (i, &node) in self.nodes.iter().enumerate() {
            if turn[node].replace(i).is_some() {
                return Err(wrong(&self.tensors[node].name, "is computed twice"));
            }
        }
        for (i, &node) in self.nodes.iter().enumerate() {
            let t = &self.tensors[node];
            let late = |at: usize| turn[at].is_some_and(|when| when >= i);
            for (k, source) in self.sources(node).into_iter().enumerate() {
                // The second source of a conversion (a copy) is the conversion itself.
                let itself = source == Some(node) && t.op == OpKind::Cpy && k == 1;
                if !itself && source.is_some_and(late) {
                    return Err(wrong(&t.name, "is computed before one of its sources"));
                }
            }
            let owner = self.owner(node);
            if owner != node && late(owner) {
                return Err(wrong(
                    &t.name,
                    "is a view of a tensor that is computed later",
                ));
            }
        }
        Ok(())
    }

    /// True if the tensor is computed: not a leaf or a view.
    pub fn computes(&self, position: usize) -> bool {
        let family = self.tensors[position].op.family();
        !matches!(family, Family::Leaf | Family::View)
    }
}

/// Reads a number of items of `bytes` bytes each. The message must be long enough for all items.
fn count(from: &mut Fields<'_>, bytes: u64, limits: &Limits) -> Result<usize, Refusal> {
    let n = u64::from(from.u32()?);
    if n > limits.tensors {
        return Err(Refusal::Limit {
            what: "tensors of a graph",
            asked: n,
            most: limits.tensors,
        });
    }
    if n.saturating_mul(bytes) > from.left() {
        return Err(Refusal::message("the message is too short for its tensors"));
    }
    usize::try_from(n).map_err(|_| Refusal::message("too many tensors"))
}

fn wrong(name: &str, what: &str) -> Refusal {
    Refusal::Graph(format!("the tensor \"{name}\" {what}"))
}

fn missing() -> Refusal {
    Refusal::Graph("a computed tensor is not in the message".to_owned())
}
