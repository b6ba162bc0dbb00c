//! # ggml's RPC protocol, served
//!
//! Any program of llama.cpp hands over its graph, and its weights, to a device that it reaches by `--rpc`. This crate is the
//! server's side of version 7: messages as types, checked, and connections that give them to a [`Device`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`protocol`] | the table of commands with their numbers and lengths |
//! | [`Tensor`], [`Graph`], [`Request`] | messages, decoded strictly |
//! | [`Buffers`] | addresses: which bytes of which buffer a tensor has |
//! | [`Device`], [`Client`] | what is served: memory and graphs |
//! | [`Captures`] | a device that writes graphs down |
//! | [`serve`], [`Server`] | a connection; a thread for each |
//! | [`Refusal`], [`Limits`] | why and when a client is not served further |
//!
//! The client is not trusted: every length, number, type, id and address of a message is checked before it is used, memory is
//! taken only as data come, and what one connection does wrong closes that one alone. A connection has buffers of its own: no
//! other can name them.

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
