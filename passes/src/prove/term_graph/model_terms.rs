//! The terms that the model itself has, by kind.

use egg::Id;
use rustc_hash::FxHashSet;

#[derive(Debug, Default)]
pub(super) struct ModelTerms {
    /// Views, as (viewed, view): a device's part of a value may be a part of its slice.
    pub(super) slices: Vec<(Id, Id)>,
    pub(super) known_slices: FxHashSet<(Id, Id)>,
    /// Sums, as (sum, terms).
    pub(super) sums: Vec<(Id, Vec<Id>)>,
    /// Repetitions, as (repeated, repetition).
    pub(super) repetitions: Vec<(Id, Id)>,
    /// The model's set slices, as (value, result).
    pub(super) sets: Vec<(Id, Id)>,
}
