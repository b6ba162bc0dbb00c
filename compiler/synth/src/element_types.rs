//! The element type of each tensor, according to the rules of `llama-quantize`.

use tpc_gguf::TensorName;
use tpc_ir::DType;

use super::spec::{Head, Spec};
use super::types::FileType;
use tpc_models::{ExpectedTensor, TensorRole};

pub(super) fn element_type(spec: &Spec, tensor: &ExpectedTensor) -> DType {
    let preferred = match tensor.role {
        TensorRole::NormWeight
        | TensorRole::Scale
        | TensorRole::Taps
        | TensorRole::Decay
        | TensorRole::Bias
        | TensorRole::RopeFactors
        | TensorRole::Sinks
        | TensorRole::Router => return DType::F32,
        TensorRole::Ids { .. } => return DType::I32,
        // Learned positions are not quantised.
        TensorRole::Embedding if tensor.name.starts_with("position_embd") => return DType::F32,
        TensorRole::Embedding | TensorRole::Output | TensorRole::Matrix | TensorRole::Experts => {
            match spec.file_type {
                FileType::Uniform(t) => t,
                FileType::Mixed => mixed_type(spec, tensor),
                FileType::Mxfp4Moe if tensor.role == TensorRole::Experts => DType::Mxfp4,
                FileType::Mxfp4Moe => DType::Q8_0,
            }
        }
    };
    // A role does not distinguish vectors from matrices.
    if tensor.ne[1..].iter().all(|&n| n == 1) {
        return DType::F32;
    }
    whole_blocks(preferred, tensor.ne[0])
}
fn mixed_type(spec: &Spec, tensor: &ExpectedTensor) -> DType {
    let is = |s: &str| tensor.name.contains(s);
    match tensor.role {
        TensorRole::Output => DType::Q6K,
        TensorRole::Embedding if spec.head == Head::Tied => DType::Q6K,
        _ if is(".attn_qkv.") => DType::Q5K,
        _ if (is(".attn_v.") || is(".ffn_down"))
            && layer(&tensor.name).is_some_and(|il| needs_more_bits(il, spec.layers)) =>
        {
            DType::Q6K
        }
        _ => DType::Q4K,
    }
}

fn layer(name: &str) -> Option<u64> {
    let (layer, _) = TensorName::parse(name).block()?;
    Some(u64::from(layer))
}

/// True if `llama-quantize` gives a layer more bits: the first and last eighth of the layers, and every third layer
/// between.
fn needs_more_bits(layer: u64, layers: u64) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

/// Returns the preferred type if its blocks divide rows of `n` elements, else `llama-quantize`'s fallback.
fn whole_blocks(preferred: DType, n: u64) -> DType {
    let fits = |t: DType| n.is_multiple_of(t.block_len());
    let smaller_block = match preferred {
        DType::Q4K => DType::Q5_0,
        DType::Q5K => DType::Q5_1,
        DType::Q6K => DType::Q8_0,
        DType::Tq1_0 | DType::Tq2_0 => DType::Q4_0,
        t if t.block_len() == 256 => DType::Iq4Nl,
        t => t,
    };
    [preferred, smaller_block]
        .into_iter()
        .find(|&t| fits(t))
        .unwrap_or(DType::F16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_no_whole_blocks_take_another_type() {
        assert_eq!(whole_blocks(DType::Q6K, 512), DType::Q6K);
        assert_eq!(whole_blocks(DType::Q6K, 320), DType::Q8_0);
        assert_eq!(whole_blocks(DType::Q2K, 320), DType::Iq4Nl);
        assert_eq!(whole_blocks(DType::Q4K, 100), DType::F16);
        assert_eq!(whole_blocks(DType::Q4_0, 100), DType::F16);
        assert_eq!(whole_blocks(DType::Bf16, 7), DType::Bf16);
    }
}
