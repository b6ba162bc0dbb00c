//! Ops that every device computes of whole sources.

use super::{Call, InferredTypes, StateRule};
use crate::meta::fault::FaultKind;
use crate::meta::states::SplitState;
use crate::op::OpKind;

pub(super) const WHOLE: StateRule = StateRule {
    takes: |op| {
        matches!(
            op,
            OpKind::Dup
                | OpKind::Add1
                | OpKind::Acc
                | OpKind::Sum
                | OpKind::CountEqual
                | OpKind::RepeatBack
                | OpKind::SiluBack
                | OpKind::RmsNormBack
                | OpKind::OutProd
                | OpKind::Set
                | OpKind::Diag
                | OpKind::DiagMaskInf
                | OpKind::DiagMaskZero
                | OpKind::SoftMaxBack
                | OpKind::GetRowsBack
                | OpKind::ConvTranspose1d
                | OpKind::Im2col
                | OpKind::Im2colBack
                | OpKind::Im2col3d
                | OpKind::Col2im1d
                | OpKind::Conv2d
                | OpKind::Conv3d
                | OpKind::Conv2dDw
                | OpKind::ConvTranspose2d
                | OpKind::Pool1d
                | OpKind::Pool2d
                | OpKind::Pool2dBack
                | OpKind::Upscale
                | OpKind::PadReflect1d
                | OpKind::Roll
                | OpKind::Arange
                | OpKind::TimestepEmbedding
                | OpKind::Tri
                | OpKind::FlashAttnBack
                | OpKind::SsmScan
                | OpKind::WinPart
                | OpKind::WinUnpart
                | OpKind::GetRelPos
                | OpKind::AddRelPos
                | OpKind::RwkvWkv6
                | OpKind::RwkvWkv7
                | OpKind::GatedLinearAttn
                | OpKind::SolveTri
                | OpKind::LightningIndexer
                | OpKind::Dsv4HcComb
                | OpKind::Dsv4HcPre
                | OpKind::Dsv4HcPost
                | OpKind::MapCustom1
                | OpKind::MapCustom2
                | OpKind::MapCustom3
                | OpKind::Custom
                | OpKind::CrossEntropyLoss
                | OpKind::CrossEntropyLossBack
                | OpKind::OptStepAdamw
                | OpKind::OptStepSgd
        )
    },
    says: "all sources mirrored → mirrored",
    apply: whole,
};

fn whole(call: &Call<'_>) -> InferredTypes {
    match call.whole_from(0) {
        true => Ok(SplitState::Mirrored),
        false => call.refused(FaultKind::Whole, "it takes mirrored sources only"),
    }
}
