use std::sync::Arc;

use crate::buffers::{Buffers, Span};
use crate::graph::Graph;
use crate::refusal::Refusal;
use crate::tensor::Tensor;

/// A device that connections share.
pub trait Device: Send + Sync {
    /// Opens the device's side of a connection.
    fn connect(&self) -> Box<dyn Client>;
}

/// A connection's part of the device. Spans are within the connection's buffers. An error closes the connection.
pub trait Client {
    /// Allocates the memory of a buffer.
    fn allocated(&mut self, whole: Span) -> Result<(), Refusal>;

    /// Frees a buffer.
    fn freed(&mut self, buffer: u64) -> Result<(), Refusal>;

    /// Fills bytes with one value.
    fn fill(&mut self, span: Span, value: u8) -> Result<(), Refusal>;

    /// Announces a write to `tensor` within `span`. Calls of [`Client::write`] follow; they may leave gaps.
    fn begin_write(&mut self, tensor: &Tensor, span: Span) -> Result<(), Refusal>;

    /// Writes a piece of the announced data at offset `start` of a buffer.
    fn write(&mut self, buffer: u64, start: u64, data: &[u8]) -> Result<(), Refusal>;

    /// True if the device has data with this hash at `span`.
    fn has(&mut self, tensor: &Tensor, span: Span, hash: u64) -> bool;

    /// Appends the bytes of `span` to `out`.
    fn read(&mut self, span: Span, out: &mut Vec<u8>) -> Result<(), Refusal>;

    /// Copies a tensor to a tensor of the same type, sizes and strides.
    fn copy(&mut self, from: Span, to: Span) -> Result<(), Refusal>;

    /// Computes a graph.
    fn compute(&mut self, graph: &Arc<Graph>, buffers: &Buffers) -> Result<(), Refusal>;
}
