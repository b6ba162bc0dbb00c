use tpc_engine::generate::{End, Generator, Slot, context_full};

use super::stream::Stream;
use crate::output::{self, Failure};

pub(super) type StreamSlot<'t> = Slot<'t, Stream<'t>>;

pub(super) fn finish(slot: &mut StreamSlot<'_>, generator: &Generator<'_>) -> Result<(), Failure> {
    finish_in(slot, generator.n_ctx, generator.unshifted.as_deref())
}

/// Ends the answer in a slot. If the context is full, reports why it cannot be shifted (`unshifted`).
pub(super) fn finish_in(
    slot: &mut StreamSlot<'_>,
    n_ctx: usize,
    unshifted: Option<&str>,
) -> Result<(), Failure> {
    slot.sink.finish()?;
    if slot.end == Some(End::Full) {
        output::diagnostic(&context_full(n_ctx, unshifted));
    }
    Ok(())
}
