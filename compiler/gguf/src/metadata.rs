//! The key/value pairs of a header, in file order.

use super::error::{GgufError, GgufErrorKind};
use super::names::NameIndex;
use super::value::MetaValue;

/// One key/value pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key, such as `llama.block_count`.
    pub key: String,
    /// Its value.
    pub value: MetaValue,
    /// Bytes from the file's start to the pair; 0 for pairs without a file.
    pub offset: u64,
}

/// The metadata of a model: distinct keys in file order, with lookup and typed getters.
///
/// `get_*` answers `None` for an absent key, `require_*` makes that an error. Either is an error when the value is
/// present but of another kind. The error names the file, the key, and the expected and the found kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    pub(super) file: String,
    entries: Vec<Entry>,
    by_key: NameIndex,
}

impl Metadata {
    /// The metadata of `file` (a name for messages).
    ///
    /// # Errors
    ///
    /// A key that occurs duplicate.
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

    /// Metadata from pairs without a file; messages name `file`.
    ///
    /// # Errors
    ///
    /// A key that occurs duplicate.
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

    /// The pairs, in file order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The pair of a key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.by_key
            .find(&self.entries, |e| &e.key, key)
            .map(|i| &self.entries[i])
    }

    /// The value of a key, whatever its type.
    pub fn value(&self, key: &str) -> Option<&MetaValue> {
        self.entry(key).map(|e| &e.value)
    }

    /// Whether the metadata have the key.
    pub fn contains(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Name of the file the metadata come from, as messages give it.
    pub fn file(&self) -> &str {
        &self.file
    }
}
