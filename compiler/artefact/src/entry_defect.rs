/// The alignment of entry data, in bytes: one page.
pub const ALIGNMENT: usize = 4096;
/// The maximum length of a name, in bytes.
pub(crate) const MAX_NAME: usize = 128;

/// A defect of an archive entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryDefect {
    /// The name has invalid characters or is too long.
    #[error(
        "the name has more than {MAX_NAME} characters, or others than lower-case letters, digits, `.`, `-`, `_` and `/`"
    )]
    Characters,
    /// The name begins with a slash.
    #[error("the name is an absolute path")]
    Absolute,
    /// The name has an empty segment, `.` or `..`.
    #[error("the name leaves the archive's folder or has an empty part")]
    Leaves,
    /// Two entries have this name.
    #[error("the name occurs twice")]
    Twice,
    /// The entry is a symbolic link.
    #[error("the entry is a symbolic link")]
    Link,
    /// The entry is a folder.
    #[error("the entry is a folder")]
    Folder,
    /// The entry is encrypted.
    #[error("the entry is encrypted")]
    Encrypted,
    /// The entry is compressed.
    #[error("the entry is compressed")]
    Compressed,
    /// The compressed and uncompressed sizes differ.
    #[error("the entry is uncompressed, but has two sizes")]
    Sizes,
    /// The data are not within the file.
    #[error("the data are not within the file")]
    Beyond,
    /// The data overlap the previous entry's data or precede them.
    #[error("the data overlap or precede the previous entry")]
    Overlaps,
    /// The data do not begin at a page.
    #[error("the data do not begin at a multiple of {ALIGNMENT}")]
    Misaligned,
    /// The checksum differs from the directory's.
    #[error("the checksum (CRC-32) of the data differs from the directory's")]
    Checksum,
}
