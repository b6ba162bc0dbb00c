//! Parts of operands and relations of ops on them, found once: layers, devices and summands have the same again and again.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use egg::Id;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::relate::{Part, Relation};

/// The parts and relations that were found, and those that there are not.
#[derive(Debug, Default)]
pub(super) struct Relations {
    /// Equal parts are one.
    parts: RefCell<FxHashSet<Rc<Part>>>,
    /// By base and number of the view.
    selected: RefCell<FxHashMap<(Id, Option<u32>), Option<Rc<Part>>>>,
    related: RefCell<FxHashMap<OpOnParts, Option<Rc<Relation>>>>,
}

/// The number of an op, and its operands.
type OpOnParts = (u32, SmallVec<[Shared; 4]>);

/// A part that is compared by its address, which is its own as long as this lives.
#[derive(Clone, Debug)]
struct Shared(Rc<Part>);

impl PartialEq for Shared {
    fn eq(&self, other: &Shared) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Shared {}

impl Hash for Shared {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Rc::as_ptr(&self.0).hash(state);
    }
}

impl Relations {
    /// Entries of a kind that are kept; beyond, all are forgotten.
    const MOST: usize = 1 << 13;
    /// Operands of the largest op whose relations are kept.
    const MAX_OPERANDS: usize = 4;

    /// The one part that is equal to this.
    pub(super) fn shared(&self, part: Part) -> Rc<Part> {
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

    /// The part of a base that a view selects, by the number of the view, or the whole of it.
    pub(super) fn part(
        &self,
        base: Id,
        view: Option<u32>,
        found: impl FnOnce() -> Option<Part>,
    ) -> Option<Rc<Part>> {
        let mut selected = self.selected.borrow_mut();
        if selected.len() >= Relations::MOST {
            selected.clear();
        }
        match selected.entry((base, view)) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(found().map(|p| self.shared(p))).clone(),
        }
    }

    /// The relation of an op, by its number, on these parts.
    pub(super) fn relation(
        &self,
        op: u32,
        parts: impl ExactSizeIterator<Item = Rc<Part>>,
        found: impl FnOnce() -> Option<Relation>,
    ) -> Option<Rc<Relation>> {
        if parts.len() > Relations::MAX_OPERANDS {
            return found().map(Rc::new);
        }
        let mut related = self.related.borrow_mut();
        if related.len() >= Relations::MOST {
            related.clear();
        }
        match related.entry((op, parts.map(Shared).collect())) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(found().map(Rc::new)).clone(),
        }
    }
}
