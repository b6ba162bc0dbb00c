//! HTTP: connections, limits, keys, and the table of paths.
//!
//! - `accept` takes connections until the shutdown;
//! - `guard` checks keys and origins before a handler runs;
//! - `routes` has all paths; `page` is the web page for a chat.

mod accept;
mod guard;
mod page;
mod routes;

pub(crate) use accept::accept;
pub(crate) use routes::routes;
