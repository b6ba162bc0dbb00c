//! Element types: every type a GGUF file may name, with its block geometry.
//!
//! Source of ids, block lengths and block bytes: the GGUF specification and ggml's `ggml_type` table. A
//! quantised tensor is a sequence of blocks along axis 0; a block holds [`DType::block_len`] elements in
//! [`DType::block_bytes`] bytes.

use std::fmt;

macro_rules! dtypes {
    ($($variant:ident = $id:literal, $name:literal, $len:literal, $bytes:literal;)*) => {
        /// The type of a tensor's elements, as numbered by GGUF.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        #[expect(missing_docs, reason = "the names are GGUF's own")]
        pub enum DType { $($variant = $id,)* }

        impl DType {
            /// Every type, in the order of its GGUF id.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// The type a GGUF file means by `id`; `None` for retired and unknown ids.
            pub const fn from_gguf_id(id: u32) -> Option<DType> {
                match id { $($id => Some(DType::$variant),)* _ => None }
            }

            /// The name used in text, as llama.cpp spells it (`q4_k`, `f16`).
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// The type of that name, in lower or upper case.
            pub fn from_name(name: &str) -> Option<DType> {
                match name.to_ascii_lowercase().as_str() { $($name => Some(DType::$variant),)* _ => None }
            }

            /// Elements in one block (1 for plain types).
            pub const fn block_len(self) -> u64 {
                match self { $(DType::$variant => $len,)* }
            }

            /// Bytes of one block.
            pub const fn block_bytes(self) -> u64 {
                match self { $(DType::$variant => $bytes,)* }
            }

            /// Bytes per element, the overhead of blocks included.
            pub fn element_bytes(self) -> f64 {
                self.block_bytes() as f64 / self.block_len() as f64
            }
        }
    };
}

dtypes! {
    F32 = 0, "f32", 1, 4;
    F16 = 1, "f16", 1, 2;
    Q4_0 = 2, "q4_0", 32, 18;
    Q4_1 = 3, "q4_1", 32, 20;
    Q5_0 = 6, "q5_0", 32, 22;
    Q5_1 = 7, "q5_1", 32, 24;
    Q8_0 = 8, "q8_0", 32, 34;
    Q8_1 = 9, "q8_1", 32, 36;
    Q2K = 10, "q2_k", 256, 84;
    Q3K = 11, "q3_k", 256, 110;
    Q4K = 12, "q4_k", 256, 144;
    Q5K = 13, "q5_k", 256, 176;
    Q6K = 14, "q6_k", 256, 210;
    Q8K = 15, "q8_k", 256, 292;
    Iq2Xxs = 16, "iq2_xxs", 256, 66;
    Iq2Xs = 17, "iq2_xs", 256, 74;
    Iq3Xxs = 18, "iq3_xxs", 256, 98;
    Iq1S = 19, "iq1_s", 256, 50;
    Iq4Nl = 20, "iq4_nl", 32, 18;
    Iq3S = 21, "iq3_s", 256, 110;
    Iq2S = 22, "iq2_s", 256, 82;
    Iq4Xs = 23, "iq4_xs", 256, 136;
    I8 = 24, "i8", 1, 1;
    I16 = 25, "i16", 1, 2;
    I32 = 26, "i32", 1, 4;
    I64 = 27, "i64", 1, 8;
    F64 = 28, "f64", 1, 8;
    Iq1M = 29, "iq1_m", 256, 56;
    Bf16 = 30, "bf16", 1, 2;
    Tq1_0 = 34, "tq1_0", 256, 54;
    Tq2_0 = 35, "tq2_0", 256, 66;
    Mxfp4 = 39, "mxfp4", 32, 17;
    Nvfp4 = 40, "nvfp4", 64, 36;
    Q1_0 = 41, "q1_0", 128, 18;
    Q2_0 = 42, "q2_0", 64, 18;
}

impl DType {
    /// The id by which GGUF files name this type.
    pub const fn gguf_id(self) -> u32 {
        self as u32
    }

    /// Whether elements are stored in blocks of several.
    pub const fn is_quantised(self) -> bool {
        self.block_len() > 1
    }

    /// The fewest elements along axis 0 that a device may store apart from their neighbours, where it takes blocks to
    /// pieces: 32 of a longer block, each with the scales that it has in the block. A block of 64 stays whole.
    pub const fn granule(self) -> u64 {
        match self.block_len() {
            len @ 0..=64 => len,
            _ => 32,
        }
    }

    /// Whether elements are integers (indices, positions), which no arithmetic op accepts.
    pub const fn is_integer(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// Bytes of `elements` consecutive elements; `None` when they are not whole blocks or overflow.
    pub const fn bytes(self, elements: u64) -> Option<u64> {
        if !elements.is_multiple_of(self.block_len()) {
            return None;
        }
        (elements / self.block_len()).checked_mul(self.block_bytes())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_one_to_one() {
        for &t in DType::ALL {
            assert_eq!(DType::from_gguf_id(t.gguf_id()), Some(t));
            assert_eq!(DType::from_name(t.name()), Some(t));
        }
        assert_eq!(DType::from_gguf_id(4), None, "retired q4_2");
        assert_eq!(DType::from_gguf_id(1000), None);
    }

    #[test]
    fn granules_divide_blocks() {
        for &t in DType::ALL {
            assert!(t.block_len().is_multiple_of(t.granule()), "{t}");
        }
        let of = |t: DType| t.granule();
        assert_eq!(
            [
                of(DType::F16),
                of(DType::Q8_0),
                of(DType::Q6K),
                of(DType::Nvfp4)
            ],
            [1, 32, 32, 64]
        );
    }

    #[test]
    fn bytes_counts_whole_blocks_only() {
        assert_eq!(DType::Q4K.bytes(512), Some(288));
        assert_eq!(DType::Q4K.bytes(300), None);
        assert_eq!(DType::F64.bytes(u64::MAX), None);
    }
}
