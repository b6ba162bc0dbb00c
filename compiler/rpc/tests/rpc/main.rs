//! Conversations with the RPC server.

mod captures;
mod conversation;
mod cuts;
mod mutants;
mod refusals;
mod reports;
mod server;
mod support;
