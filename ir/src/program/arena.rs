use super::storage_format::StorageFormat;
use crate::entity::Arena;
use crate::place::Place;

/// The minimum alignment of buffers in bytes: the widest load common to all devices.
pub const ALIGNMENT: u64 = 16;

/// The content of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArenaKind {
    /// Weights, written when the program is loaded.
    Weights,
    /// KV caches and recurrent states, kept between batches.
    States,
    /// Inputs, intermediate values and outputs of a batch.
    Work,
}

impl ArenaKind {
    /// Every kind.
    pub const ALL: [ArenaKind; 3] = [ArenaKind::Weights, ArenaKind::States, ArenaKind::Work];

    /// Returns the word used in text.
    pub const fn name(self) -> &'static str {
        match self {
            ArenaKind::Weights => "weights",
            ArenaKind::States => "states",
            ArenaKind::Work => "work",
        }
    }
}

/// A region of the memory of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaData {
    /// The place.
    pub place: Place,
    /// The content.
    pub kind: ArenaKind,
    /// The size in bytes.
    pub bytes: u64,
}

/// A range of bytes of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
}

impl Extent {
    /// Returns the offset after the last byte.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }

    /// True if the ranges share a byte.
    pub const fn overlaps(&self, other: &Extent) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }
}

/// A range of an arena that holds a value and its views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferData {
    /// The arena.
    pub arena: Arena,
    /// The storage format; [`StorageFormat::FILE`] except for weights.
    pub format: StorageFormat,
    /// The byte ranges: one per batch shape in work arenas, otherwise one.
    pub extents: Vec<Extent>,
}

impl BufferData {
    /// Returns the byte range for a shape.
    pub fn extent(&self, shape: usize) -> Extent {
        let of = self.extents.get(shape).or(self.extents.first());
        of.copied().unwrap_or(Extent {
            offset: 0,
            bytes: 0,
        })
    }
}
