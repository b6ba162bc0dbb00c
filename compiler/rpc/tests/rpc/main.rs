//! The server's side of the protocol, from outside.

mod captures;
mod conversation;
mod cuts;
mod mutants;
mod refusals;
mod server;
mod support;
