//! Which element type each tensor gets.

use tpc_ir::DType;

use tpc_models::{ExpectedTensor, TensorRole};

/// The element types of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// Matrices and embeddings are of this type.
    One(DType),
    /// As in a file of type Q4_K_M: q4_k, with q5_k or q6_k where precision matters most.
    Mixed,
    /// As in a file of type MXFP4_MOE: mxfp4 experts, the rest q8_0.
    Mxfp4Moe,
}

impl Types {
    /// The types that files of weights may have: all but integers, f64 and those of intermediate results.
    pub fn allowed() -> impl Iterator<Item = DType> {
        let intermediate = [DType::F64, DType::Q8_1, DType::Q8K];
        DType::ALL
            .iter()
            .copied()
            .filter(move |t| !t.is_integer() && !intermediate.contains(t))
    }

    /// The types of that name.
    pub fn from_name(name: &str) -> Option<Types> {
        match name {
            "mixed" | "q4_k_m" => Some(Types::Mixed),
            "mxfp4_moe" => Some(Types::Mxfp4Moe),
            _ => DType::from_name(name)
                .filter(|&t| Types::allowed().any(|a| a == t))
                .map(Types::One),
        }
    }

    /// The type of a tensor of a model of `layers` layers with this head.
    pub(super) fn of(self, tensor: &ExpectedTensor, layers: u64, head: super::Head) -> DType {
        let wanted = match tensor.role {
            TensorRole::NormWeight
            | TensorRole::Scale
            | TensorRole::Taps
            | TensorRole::Decay
            | TensorRole::Bias
            | TensorRole::RopeFactors
            | TensorRole::Sinks
            | TensorRole::Router => return DType::F32,
            // Learned positions stay as they were trained.
            TensorRole::Embedding if tensor.name.starts_with("position_embd") => return DType::F32,
            TensorRole::Embedding
            | TensorRole::Output
            | TensorRole::Matrix
            | TensorRole::Experts => match self {
                Types::One(t) => t,
                Types::Mixed => mixed(tensor, layers, head),
                Types::Mxfp4Moe if tensor.role == TensorRole::Experts => DType::Mxfp4,
                Types::Mxfp4Moe => DType::Q8_0,
            },
        };
        // What roles do not tell: a vector, or a matrix that is none of the quantised ones.
        if tensor.ne[1..].iter().all(|&n| n == 1) {
            return DType::F32;
        }
        fitting(wanted, tensor.ne[0])
    }
}

/// The type in a file of type Q4_K_M (llama-quantize's rules).
fn mixed(tensor: &ExpectedTensor, layers: u64, head: super::Head) -> DType {
    let stem = |s: &str| tensor.name.contains(s);
    match tensor.role {
        TensorRole::Output => DType::Q6K,
        TensorRole::Embedding if head == super::Head::Tied => DType::Q6K,
        _ if stem(".attn_qkv.") => DType::Q5K,
        _ if (stem(".attn_v.") || stem(".ffn_down"))
            && layer(&tensor.name).is_some_and(|il| needs_more_bits(il, layers)) =>
        {
            DType::Q6K
        }
        _ => DType::Q4K,
    }
}

/// The layer that a tensor belongs to.
fn layer(name: &str) -> Option<u64> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// The first and the last eighth of the layers, and every third between.
fn needs_more_bits(layer: u64, layers: u64) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

/// `wanted`, or where rows of `n` elements are not whole blocks of it, what llama-quantize takes instead.
fn fitting(wanted: DType, n: u64) -> DType {
    let fits = |t: DType| n.is_multiple_of(t.block_len());
    let smaller_block = match wanted {
        DType::Q4K => DType::Q5_0,
        DType::Q5K => DType::Q5_1,
        DType::Q6K => DType::Q8_0,
        DType::Tq1_0 | DType::Tq2_0 => DType::Q4_0,
        t if t.block_len() == 256 => DType::Iq4Nl,
        t => t,
    };
    [wanted, smaller_block]
        .into_iter()
        .find(|&t| fits(t))
        .unwrap_or(DType::F16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_no_whole_blocks_take_another_type() {
        assert_eq!(fitting(DType::Q6K, 512), DType::Q6K);
        assert_eq!(fitting(DType::Q6K, 320), DType::Q8_0);
        assert_eq!(fitting(DType::Q2K, 320), DType::Iq4Nl);
        assert_eq!(fitting(DType::Q4K, 100), DType::F16);
        assert_eq!(fitting(DType::Q4_0, 100), DType::F16);
        assert_eq!(fitting(DType::Bf16, 7), DType::Bf16);
    }

    #[test]
    fn the_type_of_every_name_is_that_name() {
        for t in Types::allowed() {
            assert_eq!(Types::from_name(t.name()), Some(Types::One(t)));
        }
        for bad in ["i32", "q8_1", "f64", "", "mixe"] {
            assert_eq!(Types::from_name(bad), None, "{bad}");
        }
    }
}
