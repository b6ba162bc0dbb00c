//! Interners: dense numbers for the ops, views and types that terms and signatures speak of.

use std::collections::HashMap;
use std::hash::Hash;

use tpc_ir::{Op, TensorType};

use super::language::View;

/// Dense numbers for distinct items, in order of first use.
#[derive(Debug)]
pub(super) struct Interner<T> {
    items: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            items: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<T: Eq + Hash + Clone> Interner<T> {
    /// The number of an item.
    pub(super) fn intern(&mut self, item: &T) -> u32 {
        if let Some(&n) = self.numbers.get(item) {
            return n;
        }
        let n = self.items.len() as u32;
        self.items.push(item.clone());
        self.numbers.insert(item.clone(), n);
        n
    }
}

impl<T> Interner<T> {
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.items[number as usize]
    }
}

/// The ops, views and types that terms speak of by number.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) ops: Interner<Op>,
    pub(super) views: Interner<View>,
    pub(super) types: Interner<TensorType>,
}
