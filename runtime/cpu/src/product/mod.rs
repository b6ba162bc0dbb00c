//! Matrix products with weights of every GGUF type.
//!
//! A weight is packed once ([`Format`], [`Packed`]) in panels of 16 rows. Each row is a vector lane, so no sum
//! crosses lanes. Most types keep their size. Activations for quantised weights become signed bytes in blocks of 32
//! ([`quantise`]); for float weights they stay f32. The remainder of quantised activations can be a second term
//! ([`residual`]), whose product is added. A [`Product`] computes a range of panels for any number of tokens
//! ([`Product::run`]). [`Grouped`] computes products of many experts.
//!
//! # Threads
//! Threads may run the same function on different panels. Only creating [`Packed`], [`Scratch`] and [`Routes`]
//! allocates.
//!
//! # Bit-identical results
//! A result is a fixed sequence of f32 operations: over each of 8 chunks of K in sequence, then over the chunks as a
//! binary tree. It does not depend on the number of tokens or threads, or on the instruction set ([`Isa`]). A device
//! with a [`Part`] of K computes the roots of its share of the tree. If all parts end at chunks
//! ([`Part::ends_at_chunks`]), [`Combination`] adds the roots to exactly the whole sum.
//!
//! NaN and infinite activations affect only their own products, which become NaN.
//!
//! # Example
//!
//! ```
//! use tpc_cpu::product::{
//!     Activations, Block, Epilogue, Isa, Output, Packed, Product, Scratch, Tokens, quantise,
//! };
//! use tpc_ir::DType;
//! # fn main() -> Result<(), tpc_cpu::product::ProductError> {
//! // Two q8_0 rows of 32 elements, all ones with scales of 1 and 2.
//! let row = |scale: [u8; 2]| [&scale[..], &[1; 32]].concat();
//! let bytes = [row([0x00, 0x3c]), row([0x00, 0x40])].concat();
//! let weight = Packed::new(DType::Q8_0, &bytes, 2, 32)?;
//!
//! // Three tokens with 32 activations each.
//! let isa = Isa::best();
//! let x: Vec<f32> = (0..3 * 32).map(|i| (i / 32) as f32).collect();
//! let mut blocks = [Block::ZERO; 3];
//! quantise(isa, &x, &mut blocks)?;
//!
//! let product = Product::new(
//!     isa,
//!     weight.matrix(),
//!     Activations::Quantised(&blocks),
//!     Tokens::First(3),
//!     Epilogue::default(),
//! )?;
//! let mut y = [0.0; 3 * 2];
//! let panels = 0..weight.matrix().format().panels();
//! product.run(panels, &mut Output::new(&mut y, 2, 2, 1)?, &mut Scratch::new())?;
//! assert_eq!(y, [0.0, 0.0, 32.0, 64.0, 64.0, 128.0]);
//! # Ok(())
//! # }
//! ```

mod activations;
mod error;
mod format;
mod grouped;
mod isa;
mod kernel;
mod layout;
mod multiply;
mod output;
mod pack;
mod part;
mod row;
pub(crate) mod simd;
#[cfg(test)]
mod tests;

pub use activations::{Activations, Block, quantise, residual};
pub use error::ProductError;
pub use format::{Format, Matrix, PANEL_ROWS, Packed, Source};
pub use grouped::{Grouped, Input, Routes, Share};
pub use isa::Isa;
pub use multiply::{Product, Scratch, Tokens};
pub use output::{Epilogue, Output, Write};
pub use part::{BLOCK, Combination, Part};
