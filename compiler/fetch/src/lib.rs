//! # Headers of model files on the web
//!
//! [`open`] reads the header of a GGUF file by its address: ranges of bytes by HTTP, as many as the header needs, and those
//! of its sister shards. Tensor data are not read.
//!
//! - `address` reads addresses, and makes those of pages of Hugging Face the addresses of files;
//! - `client` asks: with limits on time and redirects, and credentials for one host alone;
//! - `source` turns answers into the bytes of a file (`tpc_gguf::RangeSource`) and checks that they are what was asked for;
//! - `status` says what to do about an answer that is none.
//!
//! Invariants:
//!
//! - Nothing that a server says is believed: lengths, ranges and encodings are compared with what arrives, and the header is
//!   parsed under the limits of any file.
//! - Every wait ends: connecting, each read, and all reads together have a limit.
//! - A token goes to the host that it is for, by TLS, and with no redirect elsewhere.
//! - TLS is rustls with the roots of Mozilla's programme (`webpki-roots`), or those of `SSL_CERT_FILE`, so that a build
//!   behaves alike on every system.

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
