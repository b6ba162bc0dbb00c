use std::collections::BTreeMap;
use std::sync::Arc;

use crate::graph::Graph;
use crate::limits::Limits;
use crate::protocol::STORED_GRAPHS;
use crate::refusal::Refusal;

/// The graphs that a client may compute again by their numbers.
///
/// Client and server count alike: both forget all graphs before they store number 1025. The server keeps the number of
/// a graph whose buffer was freed, because the client counts it too.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    graphs: BTreeMap<u64, Option<Arc<Graph>>>,
    /// The tensors of all graphs.
    tensors: u64,
}

impl Stored {
    /// Stores a graph. Number 0 means that the client does not store it.
    ///
    /// # Errors
    /// Returns [`Refusal::Limit`] if the stored graphs have too many tensors.
    pub(crate) fn store(
        &mut self,
        uid: u64,
        graph: &Arc<Graph>,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        if uid == 0 {
            return Ok(());
        }
        if self.graphs.len() >= STORED_GRAPHS {
            *self = Stored::default();
        }
        self.remove(uid);
        self.tensors += graph.tensors.len() as u64;
        if self.tensors > limits.stored_tensors {
            return Err(Refusal::Limit {
                what: "tensors of stored graphs",
                asked: self.tensors,
                most: limits.stored_tensors,
            });
        }
        self.graphs.insert(uid, Some(Arc::clone(graph)));
        Ok(())
    }

    /// Returns a stored graph.
    ///
    /// # Errors
    /// Returns [`Refusal::Graph`] if the number is unknown, or if the graph used a freed buffer.
    pub(crate) fn find(&self, uid: u64) -> Result<Arc<Graph>, Refusal> {
        match self.graphs.get(&uid) {
            Some(Some(graph)) => Ok(Arc::clone(graph)),
            Some(None) => Err(Refusal::Graph(format!(
                "GRAPH_RECOMPUTE names graph {uid}, which used a buffer that the client has freed"
            ))),
            None => Err(Refusal::Graph(format!(
                "GRAPH_RECOMPUTE names graph {uid}, which the client has not sent"
            ))),
        }
    }

    /// Forgets the graphs with tensors in a freed buffer.
    pub(crate) fn freed(&mut self, buffer: u64) {
        for graph in self.graphs.values_mut() {
            let uses = |g: &Arc<Graph>| g.tensors.iter().any(|t| t.buffer == buffer);
            if let Some(forgotten) = graph.take_if(|g| uses(g)) {
                self.tensors -= forgotten.tensors.len() as u64;
            }
        }
    }

    fn remove(&mut self, uid: u64) {
        if let Some(Some(graph)) = self.graphs.remove(&uid) {
            self.tensors -= graph.tensors.len() as u64;
        }
    }
}
