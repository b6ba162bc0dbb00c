use crate::dtype::DType;

/// The storage format of a weight in a buffer.
///
/// Backends define their formats as constants; only their kernels know the bytes. The IR knows the names and the
/// valid row cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StorageFormat {
    name: &'static str,
    splits_blocks: bool,
}

impl StorageFormat {
    /// The format of the file: blocks row by row.
    pub const FILE: StorageFormat = StorageFormat::of_blocks("file");

    /// Returns a format that stores whole blocks of the file's type.
    pub const fn of_blocks(name: &'static str) -> StorageFormat {
        StorageFormat {
            name,
            splits_blocks: false,
        }
    }

    /// Returns a format that stores parts of blocks, down to [`DType::granule`].
    pub const fn of_granules(name: &'static str) -> StorageFormat {
        StorageFormat {
            name,
            splits_blocks: true,
        }
    }

    /// Returns the smallest stored part of a weight, in elements along axis 0.
    pub const fn granule(self, dtype: DType) -> u64 {
        match self.splits_blocks {
            true => dtype.granule(),
            false => dtype.block_len(),
        }
    }

    /// Returns the word used in text.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl Default for StorageFormat {
    fn default() -> StorageFormat {
        StorageFormat::FILE
    }
}
