//! A two-way map between strings and numbers.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

/// Distinct strings, numbered in insertion order and stored end to end. A random hash key prevents crafted collisions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    text: String,
    /// Each string's end offset in `text`, in bytes. Invariant: non-decreasing, on character boundaries.
    ends: Vec<usize>,
    table: HashTable<u32>,
    hash: RandomState,
}

fn part<'t>(text: &'t str, ends: &[usize], i: u32) -> &'t str {
    let i = i as usize;
    let start = if i == 0 { 0 } else { ends[i - 1] };
    &text[start..ends[i]]
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns string `i`, which must be below [`Index::len`].
    pub(crate) fn get(&self, i: u32) -> &str {
        part(&self.text, &self.ends, i)
    }

    pub(crate) fn find(&self, s: &str) -> Option<u32> {
        let hash = self.hash.hash_one(s);
        self.table.find(hash, |&i| self.get(i) == s).copied()
    }

    /// Inserts a string and returns its number; returns the number of an existing string as an error.
    pub(crate) fn insert(&mut self, s: &str) -> Result<u32, u32> {
        if let Some(there) = self.find(s) {
            return Err(there);
        }
        let i = u32::try_from(self.ends.len()).expect("invariant: a header has fewer strings");
        self.text.push_str(s);
        self.ends.push(self.text.len());
        let (text, ends, hash) = (&self.text, &self.ends, &self.hash);
        let rehash = |&i: &u32| hash.hash_one(part(text, ends, i));
        self.table.insert_unique(hash.hash_one(s), i, rehash);
        Ok(i)
    }

    /// Returns a string's number, inserting the string if necessary.
    pub(crate) fn intern(&mut self, s: &str) -> u32 {
        self.insert(s).unwrap_or_else(|there| there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_have_one_number_each() {
        let mut index = Index::default();
        let words: Vec<String> = (0..1000).map(|i| format!("w{}", i % 400)).collect();
        let numbers: Vec<u32> = words.iter().map(|w| index.intern(w)).collect();
        assert_eq!(index.len(), 400);
        for (word, number) in words.iter().zip(numbers) {
            assert_eq!(
                (index.get(number), index.find(word)),
                (word.as_str(), Some(number))
            );
        }
        assert_eq!(index.insert("w7"), Err(7));
        assert_eq!(index.find(""), None);
    }
}
