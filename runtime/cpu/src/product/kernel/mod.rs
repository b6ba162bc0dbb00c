//! Product kernels, each written once for all instruction sets ([`super::simd::Simd`]).
//!
//! For few tokens, `decode` multiplies panels decoded in registers. For many tokens, `unpack` decodes blocks for
//! `tile`. `float` multiplies float weights, `block` defines the order of sums, and `table` selects functions.

pub(super) mod block;
pub(super) mod decode;
pub(super) mod float;
pub(super) mod table;
pub(super) mod tile;
pub(super) mod unpack;

use super::layout::ROWS;

/// Maximum number of tokens with sums in registers.
pub(super) const TOKENS: usize = 6;
/// Maximum number of panels with sums in registers.
pub(super) const PANELS: usize = 2;
/// Maximum number of sums that a part of K produces, or that wait for a merge.
pub(super) const SUMS: usize = 6;

/// Sums of a register tile: `[root][token][panel][row]`.
pub(super) type Sums = [[[[f32; ROWS]; PANELS]; TOKENS]; SUMS];
