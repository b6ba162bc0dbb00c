//! The key/value pairs of a header, in file order.

use super::error::{GgufError, GgufErrorKind};
use super::names::NameIndex;
use super::value::MetaValue;

/// One key/value pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key, such as `llama.block_count`.
    pub key: String,
    /// The value.
    pub value: MetaValue,
    /// Bytes from the file's start; 0 without a file.
    pub offset: u64,
}

/// A model's metadata: distinct keys in file order, with lookup and typed getters.
///
/// For an absent key, `get_*` returns `None` and `require_*` an error. Errors name the file, the key, and the
/// expected and found types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    pub(super) file: String,
    entries: Vec<Entry>,
    by_key: NameIndex,
}

impl Metadata {
    /// Builds the metadata of a file, named `file` in messages.
    ///
    /// # Errors
    ///
    /// Returns an error if a key repeats.
    pub(super) fn new(file: &str, entries: Vec<Entry>) -> Result<Metadata, GgufError> {
        match NameIndex::build(&entries, |e| &e.key) {
            Ok(by_key) => Ok(Metadata {
                file: file.to_owned(),
                entries,
                by_key,
            }),
            Err(duplicate) => {
                let first = entries[duplicate.first].offset;
                let second = &entries[duplicate.second];
                Err(GgufError::new(file, GgufErrorKind::DuplicateKey { first })
                    .at(second.offset)
                    .in_key(&second.key))
            }
        }
    }

    /// Builds metadata without a file; `file` is the name in messages.
    ///
    /// # Errors
    ///
    /// Returns an error if a key repeats.
    pub fn from_pairs(
        file: &str,
        pairs: impl IntoIterator<Item = (String, MetaValue)>,
    ) -> Result<Metadata, GgufError> {
        let entries = pairs
            .into_iter()
            .map(|(key, value)| Entry {
                key,
                value,
                offset: 0,
            })
            .collect();
        Metadata::new(file, entries)
    }

    /// Returns the pairs in file order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if the metadata are empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns a key's pair.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.by_key
            .find(&self.entries, |e| &e.key, key)
            .map(|i| &self.entries[i])
    }

    /// Returns a key's value of any type.
    pub fn value(&self, key: &str) -> Option<&MetaValue> {
        self.entry(key).map(|e| &e.value)
    }

    /// True if the key exists.
    pub fn contains(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Returns the file's name in messages.
    pub fn file(&self) -> &str {
        &self.file
    }
}
