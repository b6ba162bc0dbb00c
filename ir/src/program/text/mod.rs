//! The text form of programs: the text of their [graph](crate::text), followed by these statements.
//!
//! ```text
//! shape {n_tokens = 1, n_kv = 64, n_ctx = 64}
//! shape {n_tokens = 16, n_kv = 64, n_ctx = 64, n_seq_tokens = 16, n_outputs = 16}
//!
//! arena a0 @dev0 weights size 8192
//! arena a1 @dev0 work size 4096
//!
//! buffer b0 = a0 [0:8192]
//! buffer b1 = a1 [0:128, 0:2048]
//!
//! home v0 = b0
//! home v1 = b1
//! home v2 = b1 at 128*n_tokens strides [4, 256, 64, 256*n_tokens]
//!
//! launch l0 "mul_mat" @dev0 = compute v1
//! launch l1 "all_reduce" @dev0, @dev1 = transfer v3
//! launch l2 "store" @dev0 = store 1
//!
//! phase 0
//! queue @dev0 = [l0, l1, l2]
//! queue @dev1 = [@dev0:1, l1]
//! ```
//!
//! | statement | meaning |
//! |---|---|
//! | `shape` | the largest value of each symbol in batches of a shape; an omitted symbol is 1 |
//! | `arena` | place, kind of content, and size in bytes |
//! | `buffer` | arena, storage format unless it is the file's, and ranges `offset:bytes`, one per shape for work |
//! | `home` | the buffer of a value, the bytes to its first element, and the strides of the axes in bytes; without strides it is dense |
//! | `launch` | kernel, places, and work |
//! | `compute`, `transfer` | the covered instructions, each named by its first result |
//! | `store` | the number of the `output` line whose value becomes the content of its state, from 0 |
//! | `phase` | the number of tokens needed after the batch; the queues of the phase follow |
//! | `queue` | launches, and waits: `@dev0:3` waits until the queue of that place has completed three steps |
//!
//! Lines, comments, handles, sizes and defects follow the graph's text form. Only waits refer to later lines.
//!
//! Invariants:
//!
//! - For every program that the [verifier](super::verify()) accepts, parsing the output of [`print()`] yields an
//!   equal program.
//! - Printing a parsed program is canonical.
//! - The parser never panics. Its time and memory are linear in the text's length.

mod parser;
mod printer;
mod spans;

#[cfg(test)]
mod tests;

pub use parser::{ParsedProgram, parse};
pub use printer::{PrintedProgram, print};
pub use spans::{Part, Spans};
