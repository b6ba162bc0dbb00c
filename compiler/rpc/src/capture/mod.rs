//! Captures: graphs of clients, in the format that `tpc lint --graph` reads.
//!
//! To the client, a capturing device looks like an ordinary device. It drops written data, returns zeros, and records
//! graphs instead of computing them. Large weights need not be sent. A capture includes the role of each leaf
//! ([`roles`]), and the sizes of other graphs of the same structure ([`structure`]).

mod records;
mod roles;
mod structure;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tpc_ggml::capture::write;

use crate::buffers::{Buffers, Span};
use crate::device::{Client, Device};
use crate::graph::Graph;
use crate::refusal::Refusal;
use crate::tensor::Tensor;
pub use records::{Recorded, generalised};
pub use roles::Roles;
use structure::Structures;

/// A device that records its clients' graphs.
#[derive(Clone, Debug, Default)]
pub struct Captures(Arc<Mutex<Structures>>);

impl Captures {
    fn structures(&self) -> MutexGuard<'_, Structures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns one capture per kind of graph, in order of first occurrence, with the sizes of all its graphs.
    pub fn texts(&self) -> Vec<String> {
        let kinds = self.structures().records();
        kinds.iter().map(|records| write(records)).collect()
    }

    /// Returns the number of computed graphs.
    pub fn graphs(&self) -> u64 {
        self.structures().computed()
    }
}

impl Device for Captures {
    fn connect(&self) -> Box<dyn Client> {
        Box::new(Capturing {
            captures: self.clone(),
            roles: Roles::default(),
            last: None,
        })
    }
}

struct Capturing {
    captures: Captures,
    roles: Roles,
    last: Option<Arc<Graph>>,
}

impl Client for Capturing {
    fn allocated(&mut self, _whole: Span) -> Result<(), Refusal> {
        Ok(())
    }

    fn freed(&mut self, buffer: u64) -> Result<(), Refusal> {
        self.roles.forget(buffer);
        Ok(())
    }

    fn fill(&mut self, _span: Span, _value: u8) -> Result<(), Refusal> {
        Ok(())
    }

    fn begin_write(&mut self, _tensor: &Tensor, span: Span) -> Result<(), Refusal> {
        self.roles.written(span);
        Ok(())
    }

    fn write(&mut self, _buffer: u64, _start: u64, _data: &[u8]) -> Result<(), Refusal> {
        Ok(())
    }

    fn has(&mut self, _tensor: &Tensor, span: Span, _hash: u64) -> bool {
        self.roles.written(span);
        true
    }

    fn read(&mut self, span: Span, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let len = usize::try_from(span.len).unwrap_or(0);
        out.resize(out.len() + len, 0);
        Ok(())
    }

    fn copy(&mut self, _from: Span, to: Span) -> Result<(), Refusal> {
        self.roles.written(to);
        Ok(())
    }

    fn compute(&mut self, graph: &Arc<Graph>, buffers: &Buffers) -> Result<(), Refusal> {
        let again = self
            .last
            .as_ref()
            .is_some_and(|last| Arc::ptr_eq(last, graph));
        if !again {
            self.roles.computes(graph, buffers);
            let recorded = Recorded::of_graph(graph, &self.roles)?;
            self.captures.structures().add(recorded.records);
            self.last = Some(Arc::clone(graph));
        } else {
            self.captures.structures().again();
        }
        Ok(())
    }
}
