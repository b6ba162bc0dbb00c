use std::hash::Hash;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tpc_ir::{Op, TensorType};

use super::language::View;

#[derive(Debug)]
pub(super) struct Interner<T> {
    items: Vec<Rc<T>>,
    numbers: FxHashMap<Rc<T>, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            items: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }
}

impl<T: Eq + Hash + Clone> Interner<T> {
    pub(super) fn intern(&mut self, item: &T) -> u32 {
        if let Some(&n) = self.numbers.get(item) {
            return n;
        }
        let n = self.items.len() as u32;
        let item = Rc::new(item.clone());
        self.items.push(Rc::clone(&item));
        self.numbers.insert(item, n);
        n
    }
}

impl<T: Eq + Hash> Interner<T> {
    pub(super) fn number(&self, item: &T) -> Option<u32> {
        self.numbers.get(item).copied()
    }
}

impl<T> Interner<T> {
    pub(super) fn items(&self) -> impl ExactSizeIterator<Item = &T> {
        self.items.iter().map(|item| &**item)
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.items[number as usize]
    }

    pub(super) fn share(&self, number: u32) -> Rc<T> {
        Rc::clone(&self.items[number as usize])
    }
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) ops: Interner<Op>,
    pub(super) views: Interner<View>,
    pub(super) types: Interner<TensorType>,
}
