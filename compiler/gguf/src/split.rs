//! Split models: file names of shards, and `split.*` keys in their headers.
//!
//! llama.cpp's `gguf-split` names shard `i` of `n` `PREFIX-0000i-of-0000n.gguf`, from 1. Each shard has `split.no`
//! (from 0), `split.count` and `split.tensors.count` (of the whole model).

use std::path::Path;

use super::error::{GgufError, GgufErrorKind};
use super::metadata::Metadata;

/// A shard's file name: `PREFIX-00001-of-00003SUFFIX`. The suffix begins with a dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitName {
    /// The part before the numbers.
    pub prefix: String,
    /// Number of this shard, from 1.
    pub number: u32,
    /// Number of shards.
    pub count: u32,
    /// The part after the numbers, such as `.gguf` or `.header.gguf`.
    pub suffix: String,
}

impl SplitName {
    /// Parses a file name without directories; `None` if it does not name a shard.
    pub fn parse(file_name: &str) -> Option<SplitName> {
        let (head, tail) = file_name.rsplit_once("-of-")?;
        let (prefix, number) = head.rsplit_once('-')?;
        let (count, suffix) = tail.split_at_checked(5)?;
        let (number, count) = (five_digits(number)?, five_digits(count)?);
        let well_formed =
            (1..=count).contains(&number) && (suffix.is_empty() || suffix.starts_with('.'));
        well_formed.then(|| SplitName {
            prefix: prefix.to_owned(),
            number,
            count,
            suffix: suffix.to_owned(),
        })
    }

    /// Parses the file name of `path`.
    pub fn of_path(path: &Path) -> Option<SplitName> {
        SplitName::parse(path.file_name()?.to_str()?)
    }

    /// Returns the same model's shard `number`, from 1.
    pub fn sibling(&self, number: u32) -> String {
        format!(
            "{}-{number:05}-of-{:05}{}",
            self.prefix, self.count, self.suffix
        )
    }
}

fn five_digits(digits: &str) -> Option<u32> {
    let all_digits = digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit());
    all_digits.then(|| digits.parse().ok()).flatten()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SplitKeys {
    /// Number of this shard, from 1: `split.no` plus one.
    pub(super) number: u32,
    /// Number of shards, at least 2.
    pub(super) count: u32,
    /// Number of tensors in all shards.
    pub(super) tensors: u64,
}

impl SplitKeys {
    /// Reads the `split.*` keys; `None` without a split.
    ///
    /// # Errors
    ///
    /// Returns an error if `split.count` is present but another key is missing, or a key has the wrong type.
    pub(super) fn read(metadata: &Metadata) -> Result<Option<SplitKeys>, GgufError> {
        match metadata.get_u32("split.count")? {
            None | Some(0 | 1) => Ok(None),
            Some(count) => Ok(Some(SplitKeys {
                number: metadata.require_u32("split.no")?.saturating_add(1),
                count,
                tensors: metadata.require_u64("split.tensors.count")?,
            })),
        }
    }

    pub(super) fn check_name(&self, file: &str, name: &SplitName) -> Result<(), GgufError> {
        expect_equal(file, "split.count", &name.count, &self.count)?;
        expect_equal(file, "split.no", &(name.number - 1), &(self.number - 1))
    }
}

pub(super) fn missing_keys(file: &str, name: &SplitName) -> GgufError {
    let (expected, found) = (name.count.to_string(), "no such key".to_owned());
    GgufError::new(
        file,
        GgufErrorKind::SplitMismatch {
            what: "split.count",
            expected,
            found,
        },
    )
}

pub(super) fn bad_name(file: &str, path: &Path, keys: SplitKeys) -> GgufError {
    let SplitKeys { number, count, .. } = keys;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let expected = format!("{stem}-{number:05}-of-{count:05}.gguf");
    GgufError::new(
        file,
        GgufErrorKind::SplitName {
            number,
            count,
            expected,
        },
    )
}

pub(super) fn expect_equal<T: PartialEq + std::fmt::Display + ?Sized>(
    file: &str,
    what: &'static str,
    expected: &T,
    found: &T,
) -> Result<(), GgufError> {
    if expected == found {
        return Ok(());
    }
    let kind = GgufErrorKind::SplitMismatch {
        what,
        expected: expected.to_string(),
        found: found.to_string(),
    };
    Err(GgufError::new(file, kind))
}
