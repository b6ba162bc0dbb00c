use std::sync::mpsc::Receiver;
use std::time::Instant;

use tpc_engine::AnySession;
use tpc_engine::embed::Embedder;

use super::job::{Command, EmbedJob};
use crate::failure;
use crate::shared::Shared;

/// Answers requests for embeddings, one text after the other, until the shutdown.
pub(crate) fn embed(
    session: &mut AnySession<'_>,
    embedder: &Embedder,
    batch: usize,
    commands: &Receiver<Command>,
    shared: &Shared,
) {
    while !shared.is_drained() {
        match commands.recv() {
            Ok(Command::Embed(job)) if !job.reply.is_closed() => {
                let EmbedJob { tokens, reply, .. } = job;
                shared.pulse.begin(tokens.len());
                let begun = Instant::now();
                let vectors = embedder.embed(session, &tokens, batch);
                let took = begun.elapsed();
                shared.pulse.end(tokens.len(), took);
                shared.metrics.batch(tokens.len(), 0, took);
                let _ = reply.send(vectors.map_err(|e| failure::first(&e)));
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}
