//! A graph of a message as the records of a capture.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use tpc_ggml::capture::{Layout, Record, Role, packed};
use tpc_ggml::op::{Family, GgmlOp, OpKind};
use tpc_ir::RANK;

use super::roles::Roles;
use super::structure::{elements, key, sizes, with_others};
use crate::graph::Graph;
use crate::refusal::Refusal;
use crate::tensor::Tensor;

const FLAG_INPUT: i32 = 1;
const FLAG_OUTPUT: i32 = 2;

/// The records of a graph.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The graph.
    pub graph: Arc<Graph>,
    /// Leaves before their first use, and what is computed in its order.
    pub records: Vec<Record>,
    /// The position of the tensor of each record in the graph.
    pub tensors: Vec<usize>,
}

impl Recorded {
    /// The records of a graph.
    ///
    /// # Errors
    /// [`Refusal::Tensor`] for a leaf whose bytes are no whole number of elements.
    pub fn of_graph(graph: &Arc<Graph>, roles: &Roles) -> Result<Recorded, Refusal> {
        let mut writing = Writing {
            graph,
            roles,
            uses: uses(graph),
            written: written(graph),
            at: BTreeMap::new(),
            records: Vec::new(),
            tensors: Vec::new(),
        };
        for &node in &graph.nodes {
            if !is_elsewhere(graph, node) {
                writing.node(node)?;
            }
        }
        let Writing {
            records, tensors, ..
        } = writing;
        Ok(Recorded {
            graph: Arc::clone(graph),
            records,
            tensors,
        })
    }

    /// What graphs that differ in sizes only have in common: the records without sizes, and where weights lie.
    pub fn structure(&self) -> String {
        let mut out = key(&self.records);
        for (t, &tensor) in self.records.iter().zip(&self.tensors) {
            let of = &self.graph.tensors[tensor];
            let _ = match t.role {
                Some(Role::Weight) => write!(out, "{}:{}:{:?};", of.buffer, of.data, t.layout),
                role => write!(out, "{role:?};"),
            };
        }
        out
    }

    /// Everything that decides the program: the records, and where weights lie.
    pub fn form(&self) -> String {
        let mut out = String::new();
        for (t, &tensor) in self.records.iter().zip(&self.tensors) {
            let of = &self.graph.tensors[tensor];
            let at = (t.role == Some(Role::Weight)).then_some((of.buffer, of.data));
            let (op, words, layout) = (t.op.name(), &t.words, &t.layout);
            let flags = (t.is_view, t.is_output, t.role, at);
            let _ = write!(
                out,
                "{op} {} {layout:?} {words:?} {:?} {} {flags:?};",
                t.dtype, t.src, t.root
            );
        }
        out
    }
}

/// The sizes of the memory of a tensor as a row of elements of its type.
fn row(t: &Tensor) -> Option<[u64; RANK]> {
    let (bytes, width) = (t.bytes()?, t.dtype.block_bytes());
    let blocks = bytes.checked_div(width).filter(|n| n * width == bytes)?;
    Some([blocks.checked_mul(t.dtype.block_len())?, 1, 1, 1])
}

/// The records of the largest of graphs of one structure, with the sizes of the others beside its own; none where there are no
/// graphs.
pub fn generalised(graphs: &[Recorded]) -> Vec<Record> {
    let largest = graphs.iter().max_by_key(|g| elements(&sizes(&g.records)));
    let Some(largest) = largest else {
        return Vec::new();
    };
    let own = sizes(&largest.records);
    let mut others: Vec<_> = graphs.iter().map(|g| sizes(&g.records)).collect();
    others.retain(|sizes| *sizes != own);
    others.dedup();
    with_others(&largest.records, &others)
}

/// Whether a tensor is a view of memory that is not on this server: the client has copied here what is read of it.
fn is_elsewhere(graph: &Graph, tensor: usize) -> bool {
    !graph.computes(tensor) && graph.tensors[graph.owner(tensor)].buffer == 0
}

/// How often each tensor is a source of what is computed.
fn uses(graph: &Graph) -> BTreeMap<usize, i32> {
    let mut out = BTreeMap::new();
    for &node in &graph.nodes {
        for source in graph.sources(node).into_iter().flatten() {
            *out.entry(source).or_default() += 1;
        }
    }
    out
}

/// The owners of memory that something else than themselves writes to.
fn written(graph: &Graph) -> BTreeSet<usize> {
    let owner = |&node: &usize| Some(graph.owner(node)).filter(|&owner| owner != node);
    let computing = || graph.nodes.iter().filter(|&&node| graph.computes(node));
    let steps = computing().filter(|&&node| graph.tensors[node].op == OpKind::OptStepAdamw);
    let moments = steps.flat_map(|&node| graph.sources(node).into_iter().skip(2).take(2).flatten());
    let moments = moments.map(|source| graph.owner(source));
    computing().filter_map(owner).chain(moments).collect()
}

/// A tensor's name without what the client's scheduler adds to that of a copy: `BACKEND#name#number`. A backend's name has the
/// port, which differs from run to run.
fn plain(name: &str) -> &str {
    let copied = name
        .split_once('#')
        .and_then(|(_, rest)| rest.rsplit_once('#'));
    let counted = copied.filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    counted.map_or(name, |(of, _)| of)
}

struct Writing<'g> {
    graph: &'g Graph,
    roles: &'g Roles,
    uses: BTreeMap<usize, i32>,
    /// The owners of memory that the graph writes to and does not make.
    written: BTreeSet<usize>,
    /// The record of each tensor that has one.
    at: BTreeMap<usize, usize>,
    records: Vec<Record>,
    tensors: Vec<usize>,
}

impl Writing<'_> {
    fn push(&mut self, tensor: usize, record: Record) -> usize {
        self.records.push(record);
        self.tensors.push(tensor);
        self.at.insert(tensor, self.records.len() - 1);
        self.records.len() - 1
    }

    /// The record of a tensor that is computed.
    fn node(&mut self, tensor: usize) -> Result<(), Refusal> {
        let t = &self.graph.tensors[tensor];
        let mut src = Vec::new();
        for source in self.graph.sources(tensor) {
            match source {
                // A conversion (`ggml_cast`) is a copy to itself.
                Some(s) if s == tensor => {}
                Some(s) => src.push(Some(self.source(s)?)),
                None => src.push(None),
            }
        }
        let owner = self.graph.owner(tensor);
        let root = match owner == tensor {
            true => None,
            false => Some(self.source(owner)?),
        };
        let mut words = t.params.to_vec();
        while words.last() == Some(&0) {
            words.pop();
        }
        let is_view = t.op.family() == Family::View;
        if is_view {
            // A view is a view of the owner of the memory, whatever it was made of.
            src.truncate(1);
        }
        let used = self.uses.get(&tensor).copied().unwrap_or(0);
        let mut own = self.record(tensor, root);
        if root.is_none() && !t.is_packed() {
            // A result in another order in memory is stored so at the end. Nothing looks into it before.
            let looks = |&at: &usize| at != tensor && self.graph.owner(at) == tensor;
            if (0..self.graph.tensors.len()).any(|at| looks(&at)) {
                return Err(gaps(t));
            }
            own.layout.nb = packed(t.dtype, t.ne);
        }
        let record = Record {
            op: GgmlOp::parse(t.op.name(), &words),
            words,
            src,
            is_output: t.flags & FLAG_OUTPUT != 0 || t.use_count > used,
            ..own
        };
        self.push(tensor, record);
        Ok(())
    }

    /// The record of a source: of what is computed it is there already, all else is a leaf or a view of one.
    fn source(&mut self, tensor: usize) -> Result<usize, Refusal> {
        if let Some(&at) = self.at.get(&tensor) {
            return Ok(at);
        }
        let t = &self.graph.tensors[tensor];
        let owner = self.graph.owner(tensor);
        if owner != tensor {
            let root = self.source(owner)?;
            let record = Record {
                op: GgmlOp::parse(OpKind::View.name(), &[]),
                src: vec![Some(root)],
                ..self.record(tensor, Some(root))
            };
            return Ok(self.push(tensor, record));
        }
        let record = Record {
            // Whatever became of its buffer before: what is written here is read later.
            role: match self.written.contains(&tensor) {
                true => Some(Role::State),
                false => self.roles.of(self.graph, tensor),
            },
            ..self.record(tensor, None)
        };
        if t.is_packed() {
            return Ok(self.push(tensor, record));
        }
        // With gaps between its elements, or in another order, it is a view of its memory, which is a row.
        let ne = row(t).ok_or_else(|| Refusal::Tensor {
            name: t.name.clone(),
            what: "it owns its memory, whose bytes are no whole number of elements".to_owned(),
        })?;
        let nb = packed(t.dtype, ne);
        let memory = Record {
            layout: Layout { ne, nb, offset: 0 },
            ..record
        };
        let root = self.push(tensor, memory);
        let view = Record {
            op: GgmlOp::parse(OpKind::View.name(), &[]),
            src: vec![Some(root)],
            ..self.record(tensor, Some(root))
        };
        Ok(self.push(tensor, view))
    }

    /// The record of a tensor without op and sources, and the record that owns its memory.
    fn record(&self, tensor: usize, root: Option<usize>) -> Record {
        let t = &self.graph.tensors[tensor];
        let offset = match root {
            Some(_) => self.offset(tensor),
            None => 0,
        };
        Record {
            line: self.records.len() + 1,
            name: plain(&t.name).to_owned(),
            op: GgmlOp::None,
            dtype: t.dtype,
            layout: Layout {
                ne: t.ne,
                nb: t.nb,
                offset,
            },
            words: Vec::new(),
            src: Vec::new(),
            root: root.unwrap_or(self.records.len()),
            is_view: root.is_some(),
            is_input: t.flags & FLAG_INPUT != 0,
            is_output: false,
            role: None,
            also: Vec::new(),
        }
    }

    /// The bytes of a view from the start of what owns its memory.
    fn offset(&self, tensor: usize) -> u64 {
        let (t, owner) = (&self.graph.tensors[tensor], self.graph.owner(tensor));
        let of = &self.graph.tensors[owner];
        let between = t.data.checked_sub(of.data);
        let same = t.buffer != 0 && t.buffer == of.buffer;
        between.filter(|_| same).unwrap_or(t.view_offs)
    }
}

fn gaps(t: &Tensor) -> Refusal {
    Refusal::Tensor {
        name: t.name.clone(),
        what: "it owns its memory, and its elements are not in order without gaps".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn copies_have_the_names_of_what_they_copy() {
        assert_eq!(plain("RPC0[127.0.0.1:5]#embd#0"), "embd");
        assert_eq!(plain("CPU#l#out#12"), "l#out");
        for own in ["embd", "a#b", "a#b#", "a#b#c", ""] {
            assert_eq!(plain(own), own);
        }
    }
}
