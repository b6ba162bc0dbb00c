//! Element types of GGUF files, with their block geometry.
//!
//! Ids, block lengths and block bytes follow the GGUF specification and the `ggml_type` tables of llama.cpp and
//! `ik_llama.cpp`. A quantised tensor is a sequence of blocks along axis 0, each with [`DType::block_len`] elements
//! in [`DType::block_bytes`] bytes. Some types of `ik_llama.cpp` add a scale per row ([`DType::row_extra`]).

use std::fmt;

macro_rules! dtypes {
    (
        llama_cpp { $($variant:ident = $id:literal, $name:literal, $len:literal, $bytes:literal;)* }
        ik_llama_cpp { $($ik:ident = $ik_id:literal, $ik_name:literal, $ik_len:literal, $ik_bytes:literal, $extra:literal;)* }
    ) => {
        /// An element type, as numbered by GGUF.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        #[expect(missing_docs, reason = "the names are GGUF's own")]
        pub enum DType { $($variant = $id,)* $($ik = $ik_id,)* }

        impl DType {
            /// The types of llama.cpp, by GGUF id.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// The types that only ik_llama.cpp supports, by GGUF id. tpc plans them but does not run them.
            pub const IK: &'static [DType] = &[$(DType::$ik),*];

            /// Returns the type with this GGUF id; `None` if retired or unknown.
            pub const fn from_gguf_id(id: u32) -> Option<DType> {
                match id { $($id => Some(DType::$variant),)* $($ik_id => Some(DType::$ik),)* _ => None }
            }

            /// Returns llama.cpp's name (`q4_k`, `f16`).
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* $(DType::$ik => $ik_name,)* }
            }

            /// Returns the type of that name; ignores case.
            pub fn from_name(name: &str) -> Option<DType> {
                match name.to_ascii_lowercase().as_str() {
                    $($name => Some(DType::$variant),)*
                    $($ik_name => Some(DType::$ik),)*
                    _ => None,
                }
            }

            /// Returns the elements per block (1 for plain types).
            pub const fn block_len(self) -> u64 {
                match self { $(DType::$variant => $len,)* $(DType::$ik => $ik_len,)* }
            }

            /// Returns the bytes per block.
            pub const fn block_bytes(self) -> u64 {
                match self { $(DType::$variant => $bytes,)* $(DType::$ik => $ik_bytes,)* }
            }

            /// Returns the bytes per row outside the blocks.
            pub const fn row_extra(self) -> u64 {
                match self { $(DType::$ik => $extra,)* _ => 0 }
            }

            /// True if only ik_llama.cpp has the type.
            pub const fn is_ik(self) -> bool {
                matches!(self, $(DType::$ik)|*)
            }

            /// Returns the bytes per element, including block overhead.
            pub fn element_bytes(self) -> f64 {
                self.block_bytes() as f64 / self.block_len() as f64
            }
        }
    };
}

dtypes! {
    llama_cpp {
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
        F8E4M3 = 43, "f8_e4m3", 1, 1;
    }
    ik_llama_cpp {
        Q6_0 = 133, "q6_0", 32, 26, 0;
        Iq1Bn = 134, "iq1_bn", 64, 13, 2;
        Iq2Bn = 135, "iq2_bn", 64, 16, 4;
        Iq2K = 137, "iq2_k", 256, 76, 0;
        Iq3K = 138, "iq3_k", 256, 110, 0;
        Iq4K = 139, "iq4_k", 256, 144, 0;
        Iq5K = 140, "iq5_k", 256, 176, 0;
        Iq6K = 141, "iq6_k", 256, 212, 0;
        Iq4Ks = 144, "iq4_ks", 256, 136, 4;
        Iq2Ks = 145, "iq2_ks", 256, 70, 2;
        Iq4Kss = 146, "iq4_kss", 256, 128, 4;
        Q8Kv = 151, "q8_kv", 32, 32, 8;
        Iq5Ks = 152, "iq5_ks", 256, 168, 4;
        Iq2Kt = 153, "iq2_kt", 256, 68, 4;
        Iq3Kt = 154, "iq3_kt", 256, 100, 4;
        Iq4Kt = 155, "iq4_kt", 256, 128, 4;
        Iq3Ks = 156, "iq3_ks", 256, 102, 2;
        Iq2Kl = 157, "iq2_kl", 256, 86, 2;
        Iq1Kt = 158, "iq1_kt", 256, 56, 4;
        Q4_0R8 = 202, "q4_0_r8", 32, 18, 0;
        Q5_0R4 = 206, "q5_0_r4", 32, 22, 0;
        Q8_0R8 = 208, "q8_0_r8", 32, 34, 0;
        Q2KR4 = 210, "q2_k_r4", 256, 84, 0;
        Q3KR4 = 211, "q3_k_r4", 256, 110, 0;
        Q4KR4 = 212, "q4_k_r4", 256, 144, 0;
        Q5KR4 = 213, "q5_k_r4", 256, 176, 0;
        Q6KR4 = 214, "q6_k_r4", 256, 210, 0;
        Iq2XxsR4 = 216, "iq2_xxs_r4", 256, 66, 0;
        Iq2XsR4 = 217, "iq2_xs_r4", 256, 74, 0;
        Iq3XxsR4 = 218, "iq3_xxs_r4", 256, 98, 0;
        Iq1SR4 = 219, "iq1_s_r4", 32, 6, 2;
        Iq4NlR4 = 220, "iq4_nl_r4", 32, 18, 0;
        Iq3SR4 = 221, "iq3_s_r4", 256, 110, 0;
        Iq2SR4 = 222, "iq2_s_r4", 256, 82, 0;
        Iq4XsR8 = 223, "iq4_xs_r8", 256, 136, 0;
        Iq1MR4 = 229, "iq1_m_r4", 32, 7, 2;
        Bf16R16 = 230, "bf16_r16", 1, 2, 0;
        Q6_0R4 = 233, "q6_0_r4", 32, 26, 0;
        Iq2BnR4 = 335, "iq2_bn_r4", 64, 16, 4;
        Iq2KR4 = 337, "iq2_k_r4", 256, 76, 0;
        Iq3KR4 = 338, "iq3_k_r4", 256, 110, 0;
        Iq4KR4 = 339, "iq4_k_r4", 256, 144, 0;
        Iq5KR4 = 340, "iq5_k_r4", 256, 176, 0;
        Iq4KsR4 = 344, "iq4_ks_r4", 256, 136, 4;
        Iq5KsR4 = 352, "iq5_ks_r4", 256, 168, 4;
        Q8KR16 = 397, "q8_k_r16", 256, 258, 0;
        Q8KvR8 = 398, "q8_kv_r8", 32, 32, 4;
        Q8KR8 = 399, "q8_k_r8", 256, 258, 0;
    }
}

impl DType {
    /// Returns the GGUF id.
    pub const fn gguf_id(self) -> u32 {
        self as u32
    }

    /// True if a block has several elements.
    pub const fn is_quantised(self) -> bool {
        self.block_len() > 1
    }

    /// Returns the smallest piece along axis 0, in elements, that a device can store: 32 elements with their scales
    /// for blocks above 64 elements, otherwise a whole block.
    pub const fn granule(self) -> u64 {
        match self.block_len() {
            len @ 0..=64 => len,
            _ => 32,
        }
    }

    /// True if elements are integers, which arithmetic ops reject.
    pub const fn is_integer(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// Returns the bytes of a tensor, contiguous axis first; `None` on overflow or if rows are not whole blocks.
    pub fn tensor_bytes(self, ne: &[u64]) -> Option<u64> {
        let (&row, others) = ne.split_first()?;
        let row = self.bytes(row)?.checked_add(self.row_extra())?;
        others
            .iter()
            .try_fold(row, |bytes, &n| bytes.checked_mul(n))
    }

    /// Returns the bytes of `elements` consecutive elements; `None` on overflow or if they are not whole blocks.
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
        for &t in DType::ALL.iter().chain(DType::IK) {
            assert_eq!(DType::from_gguf_id(t.gguf_id()), Some(t));
            assert_eq!(DType::from_name(t.name()), Some(t));
        }
        assert_eq!(DType::from_gguf_id(4), None, "retired q4_2");
        assert_eq!(DType::from_gguf_id(1000), None);
    }

    #[test]
    fn granules_divide_blocks() {
        for &t in DType::ALL.iter().chain(DType::IK) {
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

    /// Expected: the bits per weight stated by `ik_llama.cpp` (4.25 for iq4_ks) plus the row scale.
    #[test]
    fn rows_may_have_bytes_beside_blocks() {
        let row = 136 * 7168 / 256 + 4;
        assert_eq!(DType::Iq4Ks.tensor_bytes(&[7168, 3, 2, 1]), Some(6 * row));
        assert_eq!(
            DType::Q4K.tensor_bytes(&[512, 3]),
            DType::Q4K.bytes(512 * 3)
        );
        assert_eq!(DType::Iq4Ks.tensor_bytes(&[300, 2]), None);
        assert_eq!(DType::Iq4Ks.tensor_bytes(&[256, u64::MAX]), None);
        assert!(DType::ALL.iter().all(|t| t.row_extra() == 0 && !t.is_ik()));
        assert!(DType::IK.iter().all(|t| t.is_ik()));
    }
}
