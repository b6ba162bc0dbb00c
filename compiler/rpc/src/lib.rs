//! # ggml's RPC protocol, served and used
//!
//! llama.cpp programs send graphs and weights to a device given by `--rpc`. This crate serves versions 7
//! and 8 of the [`protocol`]: it checks messages and passes them to a [`Device`]. [`Captures`] is a device that records graphs.
//!
//! Clients are not trusted. Every length, number, type, id and address is checked before use, and memory grows only
//! as data arrive. An error closes only the client's own connection. Connections cannot access each other's buffers.

mod buffers;
mod capture;
mod chunks;
mod codes;
mod connection;
mod device;
mod fields;
mod graph;
mod limits;
pub mod protocol;
mod refusal;
mod remote;
mod request;
mod server;
mod stored;
mod tensor;
mod version;

pub use buffers::{ALIGNMENT, Buffers, Pool, Span};
pub use capture::{Captures, Recorded, Roles, generalised};
pub use codes::CODES;
pub use connection::{End, Stream, serve};
pub use device::{Client, Device};
pub use graph::Graph;
pub use limits::Limits;
pub use refusal::{Refusal, left_after_greeting};
pub use remote::{Remote, RemoteError};
pub use request::{Pieces, Request};
pub use server::{Count, Event, Server, Tell};
pub use tensor::Tensor;
pub use version::Version;
