use egg::Id;
use rustc_hash::FxHashSet;

#[derive(Debug, Default)]
pub(super) struct ModelTerms {
    /// Views, as (viewed, view). A device's part of a value may be a part of such a view.
    pub(super) slices: Vec<(Id, Id)>,
    pub(super) known_slices: FxHashSet<(Id, Id)>,
    /// Sums, as (sum, terms).
    pub(super) sums: Vec<(Id, Vec<Id>)>,
    /// Repetitions, as (repeated, repetition).
    pub(super) repetitions: Vec<(Id, Id)>,
    /// Set slices, as (value, result).
    pub(super) sets: Vec<(Id, Id)>,
}
