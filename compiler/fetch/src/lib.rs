//! # Model files on the web
//!
//! [`open`] reads the headers of a GGUF file and its sister shards by HTTP range requests, without tensor data.
//! [`Client::text`] reads a page of a hub's API, and [`Client::stream`] a file from any byte on.
//!
//! - Servers are not trusted: lengths, ranges and encodings are checked against the received bytes. Headers have the
//!   same limits as in local files.
//! - Connecting, each read, and all reads together have time limits.
//! - A token is sent only to its own host, only over TLS, and never after a redirect to another host.
//! - TLS uses rustls on every system, with the root certificates of Mozilla (`webpki-roots`) or of `SSL_CERT_FILE`.

mod address;
mod client;
mod codes;
mod content_range;
mod limits;
mod source;
mod status;
mod transfer;

/// True if a request failed on the way, so that the same request may work later.
pub fn is_interruption(d: &tpc_diag::Diagnostic) -> bool {
    [&codes::NO_ANSWER, &codes::WRONG_ANSWER].contains(&d.code)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use address::Address;
pub use client::{Client, Token};
pub use codes::CODES;
pub use limits::Limits;
pub use source::open;
pub use transfer::{HubHeaders, Page, Stream};
