//! Continuous batching: prompts and answers of all requests share batches.
//!
//! - a `job` is a request, the `queue` is fair between users;
//! - `batching` admits jobs to free slots and advances all slots, batch by batch;
//! - `prefixes` keeps computed texts for later requests;
//! - `reply` turns a slot's tokens into text and finds `stops`;
//! - `embedding` answers requests for embeddings;

mod batching;
mod embedding;
mod job;
mod prefixes;
mod queue;
mod reply;
mod stops;

pub(crate) use batching::{Scheduler, Sizes};
pub(crate) use embedding::embed;
pub(crate) use job::{Command, EmbedJob, Event, EventSender, Finish, Job, Piece, TokenOut, Usage};
