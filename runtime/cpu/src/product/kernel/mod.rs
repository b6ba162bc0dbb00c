//! Product kernels, each written once for all instruction sets ([`super::simd::Simd`]).
//!
//! | file      | contents                                                                      |
//! |-----------|-------------------------------------------------------------------------------|
//! | `block`   | 32 elements of 16 rows times one block of activations; defines the order of sums |
//! | `decode`  | a panel times a few tokens, decoded in registers                               |
//! | `unpack`  | blocks of a panel, decoded for `tile`                                          |
//! | `tile`    | decoded blocks of one or two panels times a few tokens                         |
//! | `float`   | panels of floats times a few tokens                                            |
//! | `table`   | the functions of each type on each instruction set                             |

pub(super) mod block;
pub(super) mod decode;
pub(super) mod float;
pub(super) mod table;
pub(super) mod tile;
pub(super) mod unpack;

use super::layout::ROWS;

/// The maximum number of tokens with sums in registers.
pub(super) const TOKENS: usize = 6;
/// The maximum number of panels with sums in registers.
pub(super) const PANELS: usize = 2;
/// The maximum number of sums that a part of K produces, or that wait for a merge.
pub(super) const SUMS: usize = 6;

/// The sums of one register tile: `[root][token][panel][row]`.
pub(super) type Sums = [[[[f32; ROWS]; PANELS]; TOKENS]; SUMS];
