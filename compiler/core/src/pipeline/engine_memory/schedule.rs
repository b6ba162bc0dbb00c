//! Assigns ops to places, and adds copies of tensors that another place reads. An op is at its weights' place, or else
//! at the place of its neighbours.

use std::collections::BTreeMap;

use super::buffers::ScheduledGraph;
use super::tensor::{Id, Kind, Tensor, Tensors};
use tpc_ggml::engines::{BackendMemory, MemoryFacts};

pub(super) struct Scheduler<'a> {
    pub(super) facts: &'a MemoryFacts,
    pub(super) back_end: BackendMemory,
    /// The number of devices, which is also the index of the host.
    pub(super) host: usize,
    pub(super) is_pipeline: bool,
}

/// Copies of a tensor, per tensor and reading place.
type Copies = BTreeMap<(Id, usize), Vec<Id>>;

/// Consecutive ops of one place, and the tensors that are copied to this place first.
struct Section {
    place: usize,
    copied: Vec<(Id, Id)>,
    ops: Vec<Id>,
}

impl Scheduler<'_> {
    pub(super) fn schedule(&self, mut graph: Tensors) -> ScheduledGraph {
        self.assign(&mut graph);
        let inputs = inputs(&graph);
        let (sections, copies) = self.sections(&mut graph);
        let mut order = Vec::with_capacity(graph.order.len());
        for section in &sections {
            for &(source, copy) in &section.copied {
                if !graph.all[source].is_stored() {
                    order.push(held(&mut graph, source));
                }
                order.push(copy);
            }
            order.extend(&section.ops);
        }
        graph.order = order;
        let mut first = Vec::new();
        if self.is_pipeline {
            for &input in &inputs {
                if !copies.contains_key(&(input, self.host)) {
                    first.extend(self.copies_of_input(&mut graph, input));
                }
            }
            first.extend(copies.into_values().flatten());
        }
        first.extend(graph.unread.clone());
        ScheduledGraph { graph, first }
    }

    fn assign(&self, graph: &mut Tensors) {
        for i in 0..graph.order.len() {
            let id = graph.order[i];
            let place = self.own_place(graph, id);
            graph.all[id].place = place;
        }
        self.spread(graph, false, true);
        self.spread(graph, true, true);
        self.spread(graph, false, false);
        self.spread(graph, true, false);
        for i in 0..graph.order.len() {
            let id = graph.order[i];
            if graph.all[id].place.is_none() {
                graph.all[id].place = graph.all[id].root.and_then(|r| graph.all[r].place);
            }
            let place = graph.all[id].place.or(Some(self.host));
            graph.all[id].place = place;
            for source in graph.all[id].sources.clone() {
                let of_root = graph.all[source].root.and_then(|r| graph.all[r].place);
                let s = &mut graph.all[source];
                if s.place.is_none() {
                    s.place = match s.kind {
                        Kind::Input => Some(self.host),
                        Kind::Stored => None,
                        _ => of_root.or(place),
                    };
                }
            }
        }
        for i in 0..graph.unread.len() {
            let id = graph.unread[i];
            graph.all[id].place = Some(self.host);
        }
    }

    fn own_place(&self, graph: &Tensors, id: Id) -> Option<usize> {
        let t = &graph.all[id];
        if let Some(root) = t.root.filter(|&r| graph.all[r].is_stored()) {
            return graph.all[root].place;
        }
        let place = graph.all[t.weight?].place?;
        let moves = place == self.host
            && self.back_end.offloads
            && self.host > 0
            && t.kind != Kind::Rows
            && t.rows >= self.facts.offload_rows;
        Some(if moves { 0 } else { place })
    }

    /// Gives ops without a place the place of the previous op, or of the next op if `backwards`. With `devices_only`,
    /// host places do not spread.
    fn spread(&self, graph: &mut Tensors, backwards: bool, devices_only: bool) {
        let n = graph.order.len();
        let mut current = None;
        for i in 0..n {
            let id = graph.order[if backwards { n - 1 - i } else { i }];
            let t = &mut graph.all[id];
            if t.kind == Kind::View {
                continue;
            }
            match t.place {
                Some(p) => current = (!devices_only || p != self.host).then_some(p),
                None => t.place = current,
            }
        }
    }

    fn sections(&self, graph: &mut Tensors) -> (Vec<Section>, Copies) {
        let is_view = |graph: &Tensors, id: Id| graph.all[id].kind == Kind::View;
        let place = |graph: &Tensors, id: Id| graph.all[id].place.unwrap_or(self.host);
        let mut copies = Copies::new();
        let first = graph.order.iter().find(|&&id| !is_view(graph, id));
        let section = |place| Section {
            place,
            copied: Vec::new(),
            ops: Vec::new(),
        };
        let mut sections = vec![section(first.map_or(self.host, |&id| place(graph, id)))];
        for id in graph.order.clone() {
            let here = place(graph, id);
            let last = &sections[sections.len() - 1];
            // A copied weight reuses the memory of the previously copied weight.
            let other_weight = |&s: &Id| graph.all[s].is_stored() && place(graph, s) != here;
            let renewed = !last.copied.is_empty() && graph.all[id].weight.iter().any(other_weight);
            if !is_view(graph, id) && (here != last.place || renewed) {
                sections.push(section(here));
            }
            let at = sections.len() - 1;
            sections[at].ops.push(id);
            if is_view(graph, id) {
                continue;
            }
            for k in 0..graph.all[id].sources.len() {
                let source = graph.all[id].sources[k];
                if place(graph, source) == here || graph.all[source].place.is_none() {
                    continue;
                }
                let made = copies.entry((source, here)).or_insert_with(|| {
                    let made = self.copies(graph, source, here);
                    sections[at].copied.push((source, made[0]));
                    made
                });
                graph.all[id].sources[k] = made[0];
            }
        }
        (sections, copies)
    }

    fn copies(&self, graph: &mut Tensors, source: Id, place: usize) -> Vec<Id> {
        let count = if self.is_pipeline {
            self.facts.pipeline_copies
        } else {
            1
        };
        let of = &graph.all[source];
        let bytes = match of.root {
            Some(_) => super::tensor::bytes_of(of.layout),
            None => of.bytes,
        };
        let mut copy = Tensor::new(Kind::Copy, of.layout, bytes);
        copy.contiguous = of.contiguous;
        copy.place = Some(place);
        copy.is_output = self.is_pipeline;
        (0..count).map(|_| graph.add(copy.clone())).collect()
    }

    /// Copies a host input, once per batch in flight.
    fn copies_of_input(&self, graph: &mut Tensors, input: Id) -> Vec<Id> {
        graph.all[input].is_output = true;
        let more = graph.all[input].clone();
        let copies = (1..self.facts.pipeline_copies).map(|_| graph.add(more.clone()));
        let mut out: Vec<Id> = copies.collect();
        out.push(input);
        out
    }
}

fn inputs(graph: &Tensors) -> Vec<Id> {
    let read = graph.order.iter().flat_map(|&id| &graph.all[id].sources);
    let mut out: Vec<Id> = read
        .chain(&graph.unread)
        .copied()
        .filter(|&id| graph.all[id].kind == Kind::Input)
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Adds a reader, so that a copied tensor stays alive.
fn held(graph: &mut Tensors, source: Id) -> Id {
    let of = &graph.all[source];
    let mut reader = Tensor::new(Kind::Held, of.layout, 0);
    reader.root = Some(graph.root(source));
    reader.sources = vec![source];
    reader.place = graph.all[source].place;
    graph.add(reader)
}
