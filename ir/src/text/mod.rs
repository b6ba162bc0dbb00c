//! The text form of graphs: `.tpir`.
//!
//! ```text
//! tpir 1
//! graph "llama"
//! device dev0 "cpu:0"
//! device dev1 "cpu:1"
//! group tp0 = [dev0, dev1]
//! class c0 "blk.0 kv heads" size 8 ranges [0:4, 4:4]
//!
//! v0 "inp_tokens": i32[n_tokens] @host = input {kind = tokens}
//!
//! layer 0
//! v1 "blk.0.attn_q": q4_k[4096, 4096] @tp0 split(1: c0*512) = weight {tensor = "blk.0.attn_q.weight"}
//! v2: f32[16] @dev0, v3: f32[16] @dev1 = all_reduce v8, v9
//!
//! layer none
//! output "logits" = v99
//! output state v10 = v88
//! ```
//!
//! `;` begins a comment. Devices, groups, classes and values are defined before use. Handles may have any distinct
//! numbers; the parser renumbers them by line.
//!
//! | part | form |
//! |---|---|
//! | result | `v3 "name": type @place sharding`; an empty name and a mirrored sharding are omitted |
//! | type | `f32[4096, n_tokens]`, sizes from axis 0 on, trailing sizes of 1 omitted |
//! | size | a polynomial in the symbols of [`Symbol`](crate::Symbol): `32*n_tokens + 3` |
//! | place | `@host`, `@dev0`, `@tp0` |
//! | sharding | `split(0: tree, 1: tree)`, `split(0: tree granule 256)`, `partial`, `owner_masked(c0)` |
//! | tree | `c0*128 + 64`, `c0/4`, `(2 + c1)*8`, `[n_tokens]*c0`: classes, sizes and, in brackets, symbolic sizes |
//! | operands | `v1, v2` |
//! | attributes | `{axis = 1, eps = 1e-5, kind = rms, tensor = "name", parts = [[0:4, 8:4], []]}` |
//!
//! `layer 3` and `layer none` set the layer of the following instructions.
//!
//! Invariants:
//!
//! - Every graph that the [verifier](crate::verify) accepts survives [`print()`] and parsing, except trees of more
//!   than [`MAX_LEAVES`] leaves or [`MAX_DEPTH`] levels.
//! - Printing a parsed graph is canonical.
//! - The parser never panics and recurses at most [`MAX_DEPTH`] levels. Time and memory are linear in the text's
//!   length.
//! - A defect rejects only its line; parsing stops after [`MAX_ERRORS`] errors.

mod attr;
mod codes;
mod error;
mod lexer;
mod names;
mod parser;
mod printer;
mod sharding;
mod spans;
mod statement;

#[cfg(test)]
mod tests;

pub use codes::CODES;
pub use error::{MAX_TEXT, ParseError, ParseErrorKind};
pub(crate) use lexer::Token;
pub(crate) use names::{Kind, Referent};
pub use parser::{MAX_DEPTH, MAX_ERRORS, ParsedGraph, parse};
pub(crate) use parser::{Parser, parse_with};
pub(crate) use printer::Printer;
pub use printer::{PrintedGraph, print};
pub use sharding::MAX_LEAVES;
pub use spans::{Entity, Span, Spans};
