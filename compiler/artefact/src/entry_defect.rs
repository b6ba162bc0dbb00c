//! Defects of an archive's entries.

/// The alignment of entry data, in bytes: one page.
pub const ALIGNMENT: usize = 4096;
/// The maximum length of a name, in bytes.
pub(crate) const MAX_NAME: usize = 128;

/// A defect of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryDefect {
    /// The name has invalid characters or is too long.
    #[error("a name has at most {MAX_NAME} lower-case letters, digits, `.`, `-`, `_` and `/`")]
    Characters,
    /// The name begins with a slash.
    #[error("the name is an absolute path")]
    Absolute,
    /// The name has an empty segment, `.` or `..`.
    #[error("the name leaves the archive's folder or has an empty part")]
    Leaves,
    /// Two entries have the name.
    #[error("the name occurs twice")]
    Twice,
    /// The entry is a symbolic link.
    #[error("must not be a symbolic link")]
    Link,
    /// The entry is a folder.
    #[error("must not be a folder")]
    Folder,
    /// The entry is encrypted.
    #[error("must not be encrypted")]
    Encrypted,
    /// The entry is compressed.
    #[error("must not be compressed")]
    Compressed,
    /// The compressed and uncompressed sizes differ.
    #[error("stored uncompressed, but with two sizes")]
    Sizes,
    /// The data are not within the file.
    #[error("the data are not within the file")]
    Beyond,
    /// The data overlap or precede the previous entry's.
    #[error("the data overlap or precede the previous entry")]
    Overlaps,
    /// The data do not begin at a page.
    #[error("the data do not begin at a multiple of {ALIGNMENT}")]
    Misaligned,
    /// The checksum differs from the directory's.
    #[error("the checksum (CRC-32) of the data differs from the directory's")]
    Checksum,
}
