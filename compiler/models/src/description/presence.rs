/// Presence of a tensor in an architecture's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Not part of the architecture. tpc warns about a file that has the tensor.
    Absent,
    /// Used if the file has the tensor.
    Optional,
    /// A file without the tensor is refused.
    Required,
}

/// Use of a metadata key. Many files carry keys without a meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyUse {
    /// The key is not read.
    Ignored,
    /// The key is read; absent or 0: off.
    Read,
    /// The key is read; absent: this number; 0: off.
    ReadOr(f32),
}
