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
    /// Leaves before their first use, and computed tensors in execution order.
    pub records: Vec<Record>,
    /// The position of each record in the graph.
    pub tensors: Vec<usize>,
}

impl Recorded {
    /// Records a graph.
    ///
    /// # Errors
    /// Returns [`Refusal::Tensor`] for a leaf whose memory ends inside an element, or for a computed tensor with gaps
    /// and views.
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

    /// Returns a key for graphs that differ only in sizes: the records without sizes, and the addresses of the
    /// weights.
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

    /// Returns a key for equal programs: the records, and the addresses of the weights.
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

fn row(t: &Tensor) -> Option<[u64; RANK]> {
    let (bytes, width) = (t.bytes()?, t.dtype.block_bytes());
    let blocks = bytes.checked_div(width).filter(|n| n * width == bytes)?;
    Some([blocks.checked_mul(t.dtype.block_len())?, 1, 1, 1])
}

/// Returns the records of the largest graph, with the sizes of the others, which must have the same structure.
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

/// True if a tensor is a view of memory on another server; the client has copied the required part.
fn is_elsewhere(graph: &Graph, tensor: usize) -> bool {
    !graph.computes(tensor) && graph.tensors[graph.owner(tensor)].buffer == 0
}

fn uses(graph: &Graph) -> BTreeMap<usize, i32> {
    let mut out = BTreeMap::new();
    for &node in &graph.nodes {
        for source in graph.sources(node).into_iter().flatten() {
            *out.entry(source).or_default() += 1;
        }
    }
    out
}

/// Returns the owners of memory that ops overwrite: of written views, and of AdamW's moments.
fn written(graph: &Graph) -> BTreeSet<usize> {
    let owner = |&node: &usize| Some(graph.owner(node)).filter(|&owner| owner != node);
    let computing = || graph.nodes.iter().filter(|&&node| graph.computes(node));
    let steps = computing().filter(|&&node| graph.tensors[node].op == OpKind::OptStepAdamw);
    let moments = steps.flat_map(|&node| graph.sources(node).into_iter().skip(2).take(2).flatten());
    let moments = moments.map(|source| graph.owner(source));
    computing().filter_map(owner).chain(moments).collect()
}

/// Strips the scheduler's decoration from a copy's name, `BACKEND#name#number`. The backend includes the port, which
/// differs between runs.
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
    written: BTreeSet<usize>,
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

    fn node(&mut self, tensor: usize) -> Result<(), Refusal> {
        let t = &self.graph.tensors[tensor];
        let mut src = Vec::new();
        for source in self.graph.sources(tensor) {
            match source {
                // The sources of a conversion (`ggml_cast`) include the conversion itself.
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
            // A view refers to the owner of the memory, for any chain of sources.
            src.truncate(1);
        }
        let used = self.uses.get(&tensor).copied().unwrap_or(0);
        let mut own = self.record(tensor, root);
        if root.is_none() && !t.is_packed() {
            // A permuted result without views is recorded as packed, because it is written in that order at the end.
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

    /// Returns the record of a source. Appends a leaf, or a view of a leaf, if the record is missing.
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
            // This graph writes memory for a later graph, so the buffer's role does not apply.
            role: match self.written.contains(&tensor) {
                true => Some(Role::State),
                false => self.roles.of(self.graph, tensor),
            },
            ..self.record(tensor, None)
        };
        if t.is_packed() {
            return Ok(self.push(tensor, record));
        }
        // A leaf with gaps or permuted axes becomes a view of its memory as one row.
        let ne = row(t).ok_or_else(|| Refusal::Tensor {
            name: t.name.clone(),
            what: "its memory is not a whole number of elements".to_owned(),
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

    /// Creates a record without op and sources. `root` is the record of the memory's owner.
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

    /// Returns the offset of a view in the owner's memory, in bytes.
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
        what: "a tensor that owns its memory must not have gaps or permuted axes".to_owned(),
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
