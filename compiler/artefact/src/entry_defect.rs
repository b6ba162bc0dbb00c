//! Defects of an archive's entries.

/// The alignment of every entry's data in bytes: one page.
pub const ALIGNMENT: usize = 4096;
/// The maximum length of an entry's name in bytes.
pub(crate) const MAX_NAME: usize = 128;

/// A defect of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryDefect {
    /// The name has invalid characters or is too long.
    #[error("a name has lower-case letters, digits, `.`, `-`, `_` and `/`, at most {MAX_NAME}")]
    Characters,
    /// The name begins with a slash.
    #[error("the name is an absolute path")]
    Absolute,
    /// The name has an empty segment, `.` or `..`.
    #[error("the name leaves its folder or has an empty part")]
    Leaves,
    /// Two entries have this name.
    #[error("the name is there twice")]
    Twice,
    /// The entry is a symbolic link.
    #[error("it is a symbolic link")]
    Link,
    /// The entry is a folder.
    #[error("it is a folder")]
    Folder,
    /// The entry is encrypted.
    #[error("it is encrypted")]
    Encrypted,
    /// The entry is compressed.
    #[error("it is compressed")]
    Compressed,
    /// The compressed and uncompressed sizes differ.
    #[error("it is stored, and has two sizes")]
    Sizes,
    /// The data is not within the file.
    #[error("its data are not within the file")]
    Beyond,
    /// The data overlaps or precedes the previous entry's data.
    #[error("its data overlap or precede those of the entry before it")]
    Overlaps,
    /// The data does not begin at a page boundary.
    #[error("its data do not begin at a multiple of {ALIGNMENT}")]
    Misaligned,
    /// The data's checksum differs from the directory's.
    #[error("its data have another checksum (CRC-32) than the directory says")]
    Checksum,
}
