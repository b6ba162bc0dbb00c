//! Caches operand parts and relations between ops, because layers, devices and summands repeat both.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use egg::Id;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::relate::{Part, Relation};

/// A cache that also records parts and relations that do not exist.
#[derive(Debug, Default)]
pub(super) struct Relations {
    parts: RefCell<FxHashSet<Rc<Part>>>,
    selected: RefCell<FxHashMap<Selection, Option<Rc<Part>>>>,
    related: RefCell<FxHashMap<OpOnParts, Option<Rc<Relation>>>>,
    /// The composition of two views, by (inner, outer).
    composed: RefCell<FxHashMap<(u32, u32), Option<u32>>>,
    /// The view that selects the second view's elements from the first view, by (first, second).
    relative: RefCell<FxHashMap<(u32, u32), Option<u32>>>,
}

/// An e-class, and the number of a view of the e-class.
type Selection = (Id, Option<u32>);

type OpOnParts = (u32, SmallVec<[PartByAddress; 4]>);

/// A part, compared by its address. Keeping the part keeps the address valid.
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
    const MOST: usize = 1 << 14;
    /// The maximum number of operands of cached relations.
    const MAX_OPERANDS: usize = 4;

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

    pub(super) fn known_composition(&self, views: (u32, u32)) -> Option<Option<u32>> {
        self.composed.borrow().get(&views).copied()
    }

    pub(super) fn keep_composition(&self, views: (u32, u32), one: Option<u32>) {
        get_or_find(&self.composed, views, || one);
    }

    pub(super) fn known_quotient(&self, views: (u32, u32)) -> Option<Option<u32>> {
        self.relative.borrow().get(&views).copied()
    }

    pub(super) fn keep_quotient(&self, views: (u32, u32), rest: Option<u32>) {
        get_or_find(&self.relative, views, || rest);
    }
}

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
