//! The use of optional tensors and metadata keys.

/// The presence of a tensor in the models of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The architecture does not know the tensor. A file that has it gets a warning.
    Absent,
    /// The model uses the tensor if the file has it.
    Optional,
    /// A file without the tensor is refused.
    Required,
}

/// The use of a metadata key by an architecture. Many files carry keys without a meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyUse {
    /// The key is not read.
    Ignored,
    /// The key is read; an absent key or 0 means that the feature is off.
    Read,
    /// The key is read; an absent key stands for this number, and 0 means that the feature is off.
    ReadOr(f32),
}
