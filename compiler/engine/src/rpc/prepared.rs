use std::collections::BTreeMap;
use std::sync::Arc;

use tpc_rpc::Graph;

use super::program::GraphBinding;

/// The maximum number of prepared graphs. A model has one per size of its batch and of its cache.
const MOST: usize = 256;

/// Graphs with their programs, and the places of their tensors in the client's memory. A client that uses several
/// contexts or models computes several graphs in turn.
#[derive(Default)]
pub(super) struct Prepared {
    /// By the address of the graph, which the entry keeps alive.
    graphs: BTreeMap<usize, Entry>,
}

struct Entry {
    graph: Arc<Graph>,
    key: String,
    binding: Arc<GraphBinding>,
}

fn address(graph: &Arc<Graph>) -> usize {
    Arc::as_ptr(graph).addr()
}

impl Prepared {
    /// Returns the key of the graph's program, and the graph's binding.
    pub(super) fn find(&self, graph: &Arc<Graph>) -> Option<(String, Arc<GraphBinding>)> {
        let entry = self.graphs.get(&address(graph))?;
        Some((entry.key.clone(), Arc::clone(&entry.binding)))
    }

    pub(super) fn add(&mut self, graph: &Arc<Graph>, key: &str, binding: &Arc<GraphBinding>) {
        // The client cannot send a graph again that only this entry keeps.
        self.graphs
            .retain(|_, entry| Arc::strong_count(&entry.graph) > 1);
        if self.graphs.len() >= MOST {
            self.graphs.clear();
        }
        let entry = Entry {
            graph: Arc::clone(graph),
            key: key.to_owned(),
            binding: Arc::clone(binding),
        };
        self.graphs.insert(address(graph), entry);
    }

    pub(super) fn clear(&mut self) {
        self.graphs.clear();
    }
}
