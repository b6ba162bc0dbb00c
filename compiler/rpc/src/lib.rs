//! # ggml's RPC protocol, served
//!
//! Any llama.cpp program can send its graph and weights to a device given by `--rpc`. This crate is the server side of
//! protocol version 7: typed, checked messages, and connections that pass them to a [`Device`].
//!
//! | module | content |
//! |---|---|
//! | [`protocol`] | the table of commands with their numbers and lengths |
//! | [`Tensor`], [`Graph`], [`Request`] | messages, decoded strictly |
//! | [`Buffers`] | addresses, and the byte range of each tensor |
//! | [`Device`], [`Client`] | the interface to memory and graph execution |
//! | [`Captures`] | a device that records graphs |
//! | [`serve`], [`Server`] | one connection; a thread for each connection |
//! | [`Refusal`], [`Limits`] | the reasons for closing a connection, and the limits |
//!
//! The client is not trusted. Every length, number, type, id and address is checked before use. Memory grows only as
//! data arrives. An error closes only the connection that caused it. Each connection has its own buffers, which other
//! connections cannot address.

mod buffers;
mod capture;
mod codes;
mod connection;
mod device;
mod fields;
mod graph;
mod limits;
pub mod protocol;
mod refusal;
mod request;
mod server;
mod tensor;

pub use buffers::{ALIGNMENT, Buffers, Pool, Span};
pub use capture::{Captures, Recorded, Roles, generalised};
pub use codes::CODES;
pub use connection::{Stream, serve};
pub use device::{Client, Device};
pub use graph::Graph;
pub use limits::Limits;
pub use refusal::Refusal;
pub use request::{Part, Request};
pub use server::{Count, Event, Server, Tell};
pub use tensor::Tensor;
