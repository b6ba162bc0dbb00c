//! # tpc-serve: an OpenAI-compatible server
//!
//! A [`Server`] listens and answers HTTP requests. Its own threads read requests and write answers; the caller's thread
//! runs the model.
//!
//! - `http` takes connections and checks keys;
//! - `api` reads requests and writes answers in OpenAI's form;
//! - `scheduler` runs the model: prompts and answers of all requests share batches;
//! - `admission` limits the number of requests, `metrics` counts, `error` has errors in OpenAI's form;
//! - `pulse` shows the watchdog whether a batch hangs, `snapshot` the slots;
//! - `shared` is the state that the scheduler and requests share, `app` the state of requests.
//!
//! On the CPU, an answer has the same bits whatever else is in the batch: each request has its own part of the caches.

mod admission;
mod api;
mod app;
mod codes;
mod error;
mod failure;
mod http;
mod metrics;
mod model;
mod options;
mod pulse;
mod scheduler;
mod server;
mod shared;
mod snapshot;

#[cfg(test)]
mod tests;

pub use codes::CODES;
pub use model::{BitsPromise, Function, Model};
pub use options::ServerOptions;
pub use server::Server;
