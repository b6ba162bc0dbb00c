//! # Headers of model files on the web
//!
//! [`open`] reads the header of a GGUF file from its web address. HTTP range requests fetch the headers of the file and
//! of its sister shards. Tensor data is not read.
//!
//! - `address` parses addresses, and converts Hugging Face pages to file addresses;
//! - `client` sends requests, with limits on time and redirects, and credentials for one host only;
//! - `source` converts responses to the bytes of a file (`tpc_gguf::RangeSource`) and checks that they match the
//!   request;
//! - `status` explains error responses and suggests remedies.
//!
//! Invariants:
//!
//! - A server is not trusted: lengths, ranges and encodings are checked against the received bytes. The header parser
//!   applies the same limits as for local files.
//! - Every wait has a limit: for connecting, for each read, and for all reads together.
//! - A token is sent only to its own host, only by TLS, and never after a redirect to another host.
//! - TLS uses rustls with Mozilla's root certificates (`webpki-roots`), or with the file named by `SSL_CERT_FILE`. A
//!   build therefore behaves the same on every system.

mod address;
mod client;
mod codes;
mod limits;
mod source;
mod status;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use address::Address;
pub use client::{Client, Token};
pub use codes::CODES;
pub use limits::Limits;
pub use source::open;
