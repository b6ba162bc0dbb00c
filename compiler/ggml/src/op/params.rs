//! Decodes `op_params` words: 32-bit integers or f32 numbers. The positions follow the constructors in `ggml.c`.

use tpc_ir::RANK;

/// An invalid `op_params` word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("op_params[{index}] is {word}, expected {expected}")]
pub struct ParamError {
    /// The position of the word.
    pub index: usize,
    /// The word as an integer.
    pub word: i32,
    /// The valid values.
    pub expected: &'static str,
}

/// The words of a record. Missing words are 0.
#[derive(Clone, Copy)]
pub(super) struct Words<'a>(pub(super) &'a [i32]);

impl Words<'_> {
    fn int(self, index: usize) -> i32 {
        self.0.get(index).copied().unwrap_or(0)
    }

    fn float(self, index: usize) -> f32 {
        f32::from_bits(self.int(index).cast_unsigned())
    }

    fn size(self, index: usize) -> Result<u64, ParamError> {
        u64::try_from(self.int(index)).map_err(|_| self.wrong(index, "0 or more"))
    }

    fn sizes<const N: usize>(self, first: usize) -> Result<[u64; N], ParamError> {
        let mut out = [0; N];
        for (i, n) in out.iter_mut().enumerate() {
            *n = self.size(first + i)?;
        }
        Ok(out)
    }

    fn wrong(self, index: usize, expected: &'static str) -> ParamError {
        ParamError {
            index,
            word: self.int(index),
            expected,
        }
    }
}

pub(super) trait Decode: Sized {
    fn decode(words: Words<'_>) -> Result<Self, ParamError>;
}

/// Declares parameters with one number per word.
macro_rules! floats {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident = $index:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: f32,)*
        }

        impl Decode for $name {
            fn decode(words: Words<'_>) -> Result<Self, ParamError> {
                Ok($name { $($field: words.float($index)),* })
            }
        }
    };
}

floats! {
    /// The parameters of `NORM`, `RMS_NORM` and `L2_NORM`.
    Norm {
        /// The summand of the mean square.
        eps = 0,
    }
}

floats! {
    /// The parameters of `SCALE`: `scale · x + bias`.
    Scale {
        /// The factor.
        scale = 0,
        /// The summand.
        bias = 1,
    }
}

floats! {
    /// The parameters of `CLAMP`.
    Clamp {
        /// The smallest result.
        min = 0,
        /// The largest result.
        max = 1,
    }
}

floats! {
    /// The parameters of `ARANGE`: `start + i · step` below `stop`.
    Arange {
        /// The first number.
        start = 0,
        /// The exclusive bound.
        stop = 1,
        /// The difference of consecutive numbers.
        step = 2,
    }
}

floats! {
    /// The parameters of `LEAKY_RELU`.
    LeakyRelu {
        /// The factor for negative elements.
        slope = 0,
    }
}

floats! {
    /// The parameters of `FILL`.
    Fill {
        /// The value of every element.
        value = 0,
    }
}

floats! {
    /// The parameters of `SOFT_MAX`: softmax of `scale · x + mask`.
    SoftMax {
        /// The factor of the logits.
        scale = 0,
        /// The largest ALiBi slope; 0 without ALiBi.
        max_bias = 1,
    }
}

floats! {
    /// The parameters of `XIELU`. The first word is the kind of `UNARY`.
    Xielu {
        /// The factor for negative elements.
        alpha_n = 1,
        /// The factor for positive elements.
        alpha_p = 2,
        /// The slope at 0.
        beta = 3,
        /// The bound of the exponent for negative elements.
        eps = 4,
    }
}

/// The parameters of `GROUP_NORM`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupNorm {
    /// The number of channel groups (axis 2).
    pub groups: u64,
    /// The summand of the variance.
    pub eps: f32,
}

impl Decode for GroupNorm {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        Ok(GroupNorm {
            groups: words.size(0)?,
            eps: words.float(1),
        })
    }
}

/// The parameters of gated activations. The first word is the kind of `GLU`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Glu {
    /// True if the second half of a single operand is the gate.
    pub swapped: bool,
    /// The factor in the sigmoid of `SWIGLU_OAI`.
    pub alpha: f32,
    /// The bound of `SWIGLU_OAI` and `SWIGLU_CLAMP`.
    pub limit: f32,
}

impl Decode for Glu {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        Ok(Glu {
            swapped: words.int(1) != 0,
            alpha: words.float(2),
            limit: words.float(3),
        })
    }
}

/// The parameters of `ACC` and `SET`: the view of the first operand that the second operand is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetView {
    /// The strides of axes 1 to 3 in bytes.
    pub nb: [u64; RANK - 1],
    /// The offset of the view in the first operand, in bytes.
    pub offset: u64,
}

impl Decode for SetView {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        Ok(SetView {
            nb: words.sizes(0)?,
            offset: words.size(3)?,
        })
    }
}

/// The parameters of `CONCAT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concat {
    /// The axis.
    pub axis: u64,
}

impl Decode for Concat {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        Ok(Concat {
            axis: words.size(0)?,
        })
    }
}

/// The parameters of `PERMUTE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permute {
    /// For each source axis, its axis in the result.
    pub axes: [usize; RANK],
}

impl Permute {
    /// Encodes the parameters.
    pub fn words(self) -> Vec<i32> {
        self.axes.map(|a| a as i32).to_vec()
    }
}

impl Decode for Permute {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        let mut axes = [0; RANK];
        for (i, axis) in axes.iter_mut().enumerate() {
            let known = usize::try_from(words.int(i)).ok().filter(|&a| a < RANK);
            *axis = known.ok_or_else(|| words.wrong(i, "an axis, 0 to 3"))?;
        }
        let twice = (1..RANK).find(|&i| axes[..i].contains(&axes[i]));
        match twice {
            Some(i) => Err(words.wrong(i, "an unused axis")),
            None => Ok(Permute { axes }),
        }
    }
}

/// The parameters of `DIAG_MASK_INF` and `DIAG_MASK_ZERO`: row `i` keeps its first `n_past + i + 1` columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiagMask {
    /// The number of tokens before the first row.
    pub n_past: u64,
}

impl Decode for DiagMask {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        Ok(DiagMask {
            n_past: words.size(0)?,
        })
    }
}

/// The precision of a product's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// The back end's precision, which may be f16.
    Default,
    /// f32 (`GGML_PREC_F32`).
    F32,
}

impl Precision {
    /// Returns the precision for a word. As in ggml, every word except 10 is the default.
    const fn of_word(word: i32) -> Precision {
        match word {
            10 => Precision::F32,
            _ => Precision::Default,
        }
    }
}

/// The parameters of `MUL_MAT` and `MUL_MAT_ID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MulMat {
    /// The sums' precision.
    pub precision: Precision,
}

impl Decode for MulMat {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        Ok(MulMat {
            precision: Precision::of_word(words.int(0)),
        })
    }
}

/// The parameters of `FLASH_ATTN_EXT`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashAttnExt {
    /// The factor of the dot products.
    pub scale: f32,
    /// The largest ALiBi slope; 0 without ALiBi.
    pub max_bias: f32,
    /// The `tanh` bound of the logits; 0 without a bound.
    pub softcap: f32,
    /// The sums' precision.
    pub precision: Precision,
}

impl Decode for FlashAttnExt {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        Ok(FlashAttnExt {
            scale: words.float(0),
            max_bias: words.float(1),
            softcap: words.float(2),
            precision: Precision::of_word(words.int(3)),
        })
    }
}

/// The pairs of elements that RoPE rotates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeMode {
    /// Pairs of neighbours (mode 0).
    Norm,
    /// Pairs at a distance of half the rotated elements (mode 2).
    Neox,
    /// NeoX pairs; each section of the row has its own position (mode 8).
    Mrope,
    /// `Mrope` for images (mode 24).
    Vision,
    /// `Mrope` with interleaved sections (mode 40).
    Imrope,
}

/// The parameters of `ROPE` and `ROPE_BACK`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// The number of rotated elements per row.
    pub n_dims: u64,
    /// The mode.
    pub mode: RopeMode,
    /// The training context in tokens, for YaRN.
    pub n_ctx_orig: u64,
    /// The base of the frequencies.
    pub freq_base: f32,
    /// The factor of the positions.
    pub freq_scale: f32,
    /// YaRN's mix of extrapolation and interpolation; 0 without YaRN.
    pub ext_factor: f32,
    /// The factor of the result.
    pub attn_factor: f32,
    /// The number of rotations above which YaRN extrapolates.
    pub beta_fast: f32,
    /// The number of rotations below which YaRN interpolates.
    pub beta_slow: f32,
    /// The pairs per section, in modes with sections.
    pub sections: [u64; 4],
    /// The index of the first rotated element of a row.
    pub offset: u64,
}

impl Decode for Rope {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        let mode = match words.int(2) {
            0 => RopeMode::Norm,
            2 => RopeMode::Neox,
            8 => RopeMode::Mrope,
            24 => RopeMode::Vision,
            40 => RopeMode::Imrope,
            _ => return Err(words.wrong(2, "a mode of rotation: 0, 2, 8, 24 or 40")),
        };
        let sections = match mode {
            RopeMode::Norm | RopeMode::Neox => [0; 4],
            RopeMode::Mrope | RopeMode::Vision | RopeMode::Imrope => words.sizes(11)?,
        };
        Ok(Rope {
            n_dims: words.size(1)?,
            mode,
            n_ctx_orig: words.size(4)?,
            freq_base: words.float(5),
            freq_scale: words.float(6),
            ext_factor: words.float(7),
            attn_factor: words.float(8),
            beta_fast: words.float(9),
            beta_slow: words.float(10),
            sections,
            offset: words.size(15)?,
        })
    }
}

/// The pooling function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// The maximum.
    Max,
    /// The mean.
    Avg,
}

/// The parameters of `POOL_2D`, with sizes along axes 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool2d {
    /// The pooling function.
    pub kind: PoolKind,
    /// The window, in elements per axis.
    pub window: [u64; 2],
    /// The stride, in elements per axis.
    pub stride: [u64; 2],
    /// The padding before and after each axis, in elements.
    pub pad: [u64; 2],
}

impl Decode for Pool2d {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        let kind = match words.int(0) {
            0 => PoolKind::Max,
            1 => PoolKind::Avg,
            _ => return Err(words.wrong(0, "0 (maximum) or 1 (average)")),
        };
        if let Some(index) = (1..5).find(|&i| words.int(i) == 0) {
            return Err(words.wrong(index, "a window or step of 1 or more"));
        }
        Ok(Pool2d {
            kind,
            window: words.sizes(1)?,
            stride: words.sizes(3)?,
            pad: words.sizes(5)?,
        })
    }
}

/// The parameters of `PAD`: the number of added elements per axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pad {
    /// The number of elements before the first element.
    pub before: [u64; RANK],
    /// The number of elements after the last element.
    pub after: [u64; RANK],
    /// True if the added elements wrap around; otherwise they are zeros.
    pub circular: bool,
}

impl Decode for Pad {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        let [mut before, mut after] = [[0; RANK]; 2];
        for axis in 0..RANK {
            before[axis] = words.size(2 * axis)?;
            after[axis] = words.size(2 * axis + 1)?;
        }
        Ok(Pad {
            before,
            after,
            circular: words.int(8) != 0,
        })
    }
}

/// The parameters of `ROLL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roll {
    /// The shift of each axis, in elements.
    pub shifts: [i32; RANK],
}

impl Decode for Roll {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        Ok(Roll {
            shifts: std::array::from_fn(|axis| words.int(axis)),
        })
    }
}

/// The order of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOrder {
    /// The smallest element first.
    Ascending,
    /// The largest element first.
    Descending,
}

/// The parameters of `ARGSORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgSort {
    /// The order of the indices.
    pub order: SortOrder,
}

impl Decode for ArgSort {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        let order = match words.int(0) {
            0 => SortOrder::Ascending,
            1 => SortOrder::Descending,
            _ => return Err(words.wrong(0, "0 (ascending) or 1 (descending)")),
        };
        Ok(ArgSort { order })
    }
}

/// The kept triangle of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriKind {
    /// The diagonal and above.
    UpperDiag,
    /// Above the diagonal.
    Upper,
    /// The diagonal and below.
    LowerDiag,
    /// Below the diagonal.
    Lower,
}

/// The parameters of `TRI`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tri {
    /// The kept triangle; the rest is 0.
    pub kind: TriKind,
}

impl Decode for Tri {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        let kind = match words.int(0) {
            0 => TriKind::UpperDiag,
            1 => TriKind::Upper,
            2 => TriKind::LowerDiag,
            3 => TriKind::Lower,
            _ => return Err(words.wrong(0, "one of four triangles, 0 to 3")),
        };
        Ok(Tri { kind })
    }
}

/// The parameters of `SSM_SCAN` and `GATED_DELTA_NET`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// The number of final states in the result; 0 counts as 1.
    pub n_states: u64,
}

impl Decode for Recurrence {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        Ok(Recurrence {
            n_states: words.size(0)?,
        })
    }
}

/// The parameters of `DSV4_HC_PRE`: `scale · Σ weight · x` over streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HcPre {
    /// The factor of the sum.
    pub scale: f32,
    /// True if each element has its own weight, the sigmoid of the input.
    pub gated: bool,
}

impl Decode for HcPre {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        let gated = match words.int(1) {
            0 => false,
            1 => true,
            _ => return Err(words.wrong(1, "0 or 1")),
        };
        // Older versions wrote 0 and had no factor.
        let scale = match words.int(0) {
            0 => 1.0,
            _ => words.float(0),
        };
        Ok(HcPre { scale, gated })
    }
}

/// The parameters of `DSV4_HC_COMB`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HcComb {
    /// The summand of the divisors.
    pub eps: f32,
    /// The number of rounds that normalise rows and columns.
    pub iterations: u64,
}

impl Decode for HcComb {
    fn decode(words: Words<'_>) -> Result<Self, ParamError> {
        Ok(HcComb {
            eps: words.float(0),
            iterations: words.size(1)?,
        })
    }
}
