//! What can be wrong with an entry of an archive.

/// The data of every entry begin at a multiple of so many bytes: those of a page.
pub const ALIGNMENT: usize = 4096;
/// The longest name of an entry, in bytes.
pub(crate) const MAX_NAME: usize = 128;

/// What is wrong with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryDefect {
    /// Its name has other characters than names have, or is too long.
    #[error("a name has lower-case letters, digits, `.`, `-`, `_` and `/`, at most {MAX_NAME}")]
    Characters,
    /// Its name begins with a slash.
    #[error("the name is an absolute path")]
    Absolute,
    /// Its name has an empty segment, `.` or `..`.
    #[error("the name leaves its folder or has an empty part")]
    Leaves,
    /// There is another one of that name.
    #[error("the name is there twice")]
    Twice,
    /// It is a symbolic link.
    #[error("it is a symbolic link")]
    Link,
    /// It is a folder.
    #[error("it is a folder")]
    Folder,
    /// It is encrypted.
    #[error("it is encrypted")]
    Encrypted,
    /// It is compressed.
    #[error("it is compressed")]
    Compressed,
    /// Its two sizes differ.
    #[error("it is stored, and has two sizes")]
    Sizes,
    /// Its data do not lie within the file.
    #[error("its data are not within the file")]
    Beyond,
    /// Its data overlap those of another, or come before them.
    #[error("its data overlap or precede those of the entry before it")]
    Overlaps,
    /// Its data do not begin at a page.
    #[error("its data do not begin at a multiple of {ALIGNMENT}")]
    Misaligned,
    /// Its data have another checksum.
    #[error("its data have another checksum (CRC-32) than the directory says")]
    Checksum,
}
