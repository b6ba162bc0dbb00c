//! The number of sources of an op, as ggml's constructors set them.

use super::table::{Family, OpKind};

impl OpKind {
    /// The number of leading sources that every record of the op has. Sources behind them are optional.
    pub const fn least_sources(self) -> usize {
        match self {
            OpKind::None | OpKind::Arange | OpKind::Custom => 0,
            OpKind::Add
            | OpKind::Add1
            | OpKind::Acc
            | OpKind::Sub
            | OpKind::Mul
            | OpKind::Div
            | OpKind::CountEqual
            | OpKind::Concat
            | OpKind::SiluBack
            | OpKind::RmsNormBack
            | OpKind::MulMat
            | OpKind::OutProd
            | OpKind::Set
            | OpKind::GetRows
            | OpKind::GetRowsBack
            | OpKind::SoftMaxBack
            | OpKind::Rope
            | OpKind::RopeBack
            | OpKind::ConvTranspose1d
            | OpKind::Im2col
            | OpKind::Im2colBack
            | OpKind::Im2col3d
            | OpKind::Conv2d
            | OpKind::Conv3d
            | OpKind::Conv2dDw
            | OpKind::ConvTranspose2d
            | OpKind::Pool2dBack
            | OpKind::SsmConv
            | OpKind::SolveTri
            | OpKind::Dsv4HcPre
            | OpKind::MapCustom2
            | OpKind::CrossEntropyLoss => 2,
            OpKind::AddId
            | OpKind::MulMatId
            | OpKind::SetRows
            | OpKind::FlashAttnExt
            | OpKind::AddRelPos
            | OpKind::MapCustom3
            | OpKind::CrossEntropyLossBack
            | OpKind::OptStepSgd
            | OpKind::Dsv4HcPost => 3,
            OpKind::LightningIndexer | OpKind::FlashAttnBack => 4,
            OpKind::GatedLinearAttn | OpKind::OptStepAdamw => 5,
            // A scan without a list of its states has six.
            OpKind::RwkvWkv6 | OpKind::GatedDeltaNet | OpKind::SsmScan => 6,
            OpKind::RwkvWkv7 => 7,
            _ => 1,
        }
    }
}

/// Whether the op is a kind of `UNARY`, whose first parameter repeats the name.
pub(super) fn is_unary_kind(op: OpKind) -> bool {
    op.family() == Family::Elementwise && (OpKind::Abs..=OpKind::Trunc).contains(&op)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_the_sources_that_their_rules_read() {
        for &op in OpKind::ALL {
            let least = op.least_sources();
            match op.family() {
                Family::Leaf => assert_eq!(least, 0),
                Family::Binary => assert_eq!(least, 2, "{op}"),
                Family::View | Family::Elementwise | Family::Gated | Family::Norm => {
                    assert_eq!(least, 1, "{op}");
                }
                Family::Copy | Family::Generic | Family::Other => assert!(least < 8, "{op}"),
            }
        }
        assert!(is_unary_kind(OpKind::Silu) && !is_unary_kind(OpKind::Scale));
    }
}
