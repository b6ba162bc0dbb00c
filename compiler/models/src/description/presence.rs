//! The use of optional tensors and metadata keys.

/// A tensor's presence in an architecture's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Not part of the architecture. tpc warns about a file that has the tensor.
    Absent,
    /// Used if the file has the tensor.
    Optional,
    /// A file without the tensor is refused.
    Required,
}

/// An architecture's use of a metadata key. Many files carry keys without a meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyUse {
    /// The key is not read.
    Ignored,
    /// Read; absent or 0: off.
    Read,
    /// Read; absent: this number; 0: off.
    ReadOr(f32),
}
