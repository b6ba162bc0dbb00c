//! The layers of a graph: what precedes and follows them, and which of them are alike.

mod prologue;

pub use prologue::Prologue;
