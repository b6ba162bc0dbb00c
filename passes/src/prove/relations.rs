//! Cache of the parts of operands and the relations of ops on them. Layers, devices and summands repeat the same ones.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use egg::Id;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::relate::{Part, Relation};

/// The cache of parts and relations, including the ones that do not exist.
#[derive(Debug, Default)]
pub(super) struct Relations {
    /// Equal parts are one.
    parts: RefCell<FxHashSet<Rc<Part>>>,
    /// Parts, by base and number of the view.
    selected: RefCell<FxHashMap<Selection, Option<Rc<Part>>>>,
    related: RefCell<FxHashMap<OpOnParts, Option<Rc<Relation>>>>,
    /// The composition of two views, by the numbers of the inner and the outer view.
    composed: RefCell<FxHashMap<(u32, u32), Option<u32>>>,
    /// The quotient of two views, by the numbers of the view to select from and the view to find.
    relative: RefCell<FxHashMap<(u32, u32), Option<u32>>>,
}

/// A base, and the number of a view of it.
type Selection = (Id, Option<u32>);

/// The number of an op, and its operands.
type OpOnParts = (u32, SmallVec<[PartByAddress; 4]>);

/// A part that is compared by its address. The address stays valid as long as this value lives.
#[derive(Clone, Debug)]
struct PartByAddress(Rc<Part>);

impl PartialEq for PartByAddress {
    fn eq(&self, other: &PartByAddress) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PartByAddress {}

impl Hash for PartByAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Rc::as_ptr(&self.0).hash(state);
    }
}

impl Relations {
    /// The most entries of a kind; if there are more, all are dropped.
    const MOST: usize = 1 << 14;
    /// The most operands of an op whose relations are cached.
    const MAX_OPERANDS: usize = 4;

    /// Returns the interned part that is equal to `part`.
    pub(super) fn intern_part(&self, part: Part) -> Rc<Part> {
        let mut parts = self.parts.borrow_mut();
        if let Some(known) = parts.get(&part) {
            return Rc::clone(known);
        }
        if parts.len() >= Relations::MOST {
            parts.clear();
        }
        let part = Rc::new(part);
        parts.insert(Rc::clone(&part));
        part
    }

    /// Returns the part of a base that a view selects, by the number of the view, or the whole of it.
    pub(super) fn part(
        &self,
        base: Id,
        view: Option<u32>,
        found: impl FnOnce() -> Option<Part>,
    ) -> Option<Rc<Part>> {
        get_or_find(&self.selected, (base, view), || {
            found().map(|p| self.intern_part(p))
        })
    }

    /// Returns the relation of an op, by its number, on these parts.
    pub(super) fn relation(
        &self,
        op: u32,
        parts: impl ExactSizeIterator<Item = Rc<Part>>,
        found: impl FnOnce() -> Option<Relation>,
    ) -> Option<Rc<Relation>> {
        if parts.len() > Relations::MAX_OPERANDS {
            return found().map(Rc::new);
        }
        let key = (op, parts.map(PartByAddress).collect());
        get_or_find(&self.related, key, || found().map(Rc::new))
    }

    /// Returns the cached view of a view, by the numbers of the inner and the outer.
    pub(super) fn known_composition(&self, views: (u32, u32)) -> Option<Option<u32>> {
        self.composed.borrow().get(&views).copied()
    }

    /// Caches the number of the composition of two views, or its absence.
    pub(super) fn keep_composition(&self, views: (u32, u32), one: Option<u32>) {
        get_or_find(&self.composed, views, || one);
    }

    /// Returns the cached view of one view that gives another.
    pub(super) fn known_quotient(&self, views: (u32, u32)) -> Option<Option<u32>> {
        self.relative.borrow().get(&views).copied()
    }

    /// Caches the number of the quotient of two views, or its absence.
    pub(super) fn keep_quotient(&self, views: (u32, u32), rest: Option<u32>) {
        get_or_find(&self.relative, views, || rest);
    }
}

/// Returns the cached entry of a key. If it is missing, computes and caches it.
fn get_or_find<K: Eq + Hash, T: Clone>(
    all: &RefCell<FxHashMap<K, T>>,
    key: K,
    found: impl FnOnce() -> T,
) -> T {
    let mut all = all.borrow_mut();
    if all.len() >= Relations::MOST {
        all.clear();
    }
    all.entry(key).or_insert_with(found).clone()
}
