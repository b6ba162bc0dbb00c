//! What a server serves: a device, and what it does for a connection.

use std::sync::Arc;

use crate::buffers::{Buffers, Span};
use crate::graph::Graph;
use crate::refusal::Refusal;
use crate::request::Part;
use crate::tensor::Tensor;

/// A device that connections share.
pub trait Device: Send + Sync {
    /// The device's side of a new connection.
    fn connect(&self) -> Box<dyn Client>;
}

/// The device's side of a connection. All spans are within buffers of the connection.
pub trait Client {
    /// A buffer was allocated, all of whose bytes this is.
    ///
    /// # Errors
    /// When the device does not have the memory after all.
    fn allocated(&mut self, whole: Span) -> Result<(), Refusal>;

    /// A buffer was freed.
    fn freed(&mut self, buffer: u64);

    /// Gives bytes one value.
    ///
    /// # Errors
    /// When the device fails.
    fn fill(&mut self, span: Span, value: u8) -> Result<(), Refusal>;

    /// Bytes of a tensor come: all of `part`, which lie at `span`. The data come by [`Client::write`].
    ///
    /// # Errors
    /// When the device fails.
    fn begin_write(&mut self, part: &Part, span: Span) -> Result<(), Refusal>;

    /// Writes some of the bytes that were announced, which lie from `start` of the buffer on.
    ///
    /// # Errors
    /// When the device fails.
    fn write(&mut self, buffer: u64, start: u64, data: &[u8]) -> Result<(), Refusal>;

    /// Whether the device has a tensor's data already, by their hash. The bytes are those from `span` on.
    fn has(&mut self, tensor: &Tensor, span: Span, hash: u64) -> bool;

    /// Appends bytes.
    ///
    /// # Errors
    /// When the device fails.
    fn read(&mut self, span: Span, out: &mut Vec<u8>) -> Result<(), Refusal>;

    /// Copies a tensor to another of the same form.
    ///
    /// # Errors
    /// When the device fails.
    fn copy(&mut self, from: Span, to: Span) -> Result<(), Refusal>;

    /// Computes a graph.
    ///
    /// # Errors
    /// When the device cannot.
    fn compute(&mut self, graph: &Arc<Graph>, buffers: &Buffers) -> Result<(), Refusal>;
}
