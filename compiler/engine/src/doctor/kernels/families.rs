//! The families of kernels, with the ops of their cases.

use tpc_cuda::kernels::Instance;

/// The kernels of some modules.
pub(in crate::doctor) struct Family {
    /// The name of the check.
    pub(in crate::doctor) name: &'static str,
    modules: &'static [&'static str],
    /// The beginning of the kernels' names.
    template: &'static str,
    /// Names of ops, as `tpc_op_cases::generator` knows them.
    pub(super) ops: &'static [&'static str],
    /// The ops of the quick run.
    pub(super) quick: &'static [&'static str],
}

impl Family {
    /// True if a kernel belongs to the family.
    pub(super) fn has(&self, kernel: &Instance) -> bool {
        self.modules.contains(&kernel.module()) && kernel.name().starts_with(self.template)
    }

    /// True if the quick run checks the family.
    pub(in crate::doctor) const fn is_quick(&self) -> bool {
        !self.quick.is_empty()
    }
}

macro_rules! family {
    ($name:literal, [$($module:literal),*] $($template:literal)?, [$($op:literal),*] $(, quick: [$($quick:literal),*])?) => {
        Family {
            name: concat!($name, " kernels"),
            modules: &[$($module),*],
            template: concat!($($template)?),
            ops: &[$($op),*],
            quick: &[$($($quick),*)?],
        }
    };
}

/// All families. A new op is one word.
#[rustfmt::skip]
pub(in crate::doctor) const FAMILIES: &[Family] = &[
    family!("norm", ["norm"], ["rms_norm", "norm", "l2_norm", "norm_stats", "norm_apply"], quick: ["rms_norm"]),
    family!("matrix", ["matmul"], ["mul_mat", "mul_mat_id"]),
    family!("pointwise", ["pointwise"], [
        "silu", "gelu", "gelu_erf", "gelu_quick", "relu", "sigmoid", "tanh", "exp", "softplus", "neg", "sqr", "sqrt",
        "add", "sub", "mul", "div", "swiglu", "geglu", "reglu", "swiglu_oai", "scale", "clamp", "leaky_relu", "xielu",
        "fill", "cast"
    ]),
    family!("position", ["rope"], ["rope"]),
    family!("decoding attention", ["attention"] "flash_decode", ["flash_attn"]),
    family!("prompt attention", ["flash_prefill"], ["flash_attn"]),
    family!("attention", ["attention"], ["flash_attn", "soft_max"]),
    family!("movement", ["movement"], [
        "copy", "reshape", "permute", "slice", "concat", "repeat", "pad", "tri", "diag", "arange", "hadamard"
    ]),
    family!("row", ["rows"], ["get_rows", "set_rows", "set_slice", "add_id"]),
    family!("reduction", ["reduce"], ["sum", "mean", "cumsum", "top_k", "top_mask", "top_k_mask", "argsort"]),
    family!("recurrent", ["recurrent"], ["ssm_conv", "ssm_scan", "gated_delta_net", "wkv"]),
    family!("other", ["lightning_indexer", "ngram_rows", "hc_comb", "pool_2d", "merge_attn"], [
        "lightning_indexer", "ngram_rows", "hc_comb", "pool_2d", "merge_attn"
    ]),
];

#[cfg(test)]
mod tests {
    use tpc_ir::op::{BinaryKind, GluKind, Op, UnaryKind};
    use tpc_op_cases::generator;

    use super::*;

    #[test]
    fn every_op_with_cases_is_in_a_family() {
        let known = |op: &str| FAMILIES.iter().any(|f| f.ops.contains(&op));
        for op in FAMILIES.iter().flat_map(|f| f.ops.iter().chain(f.quick)) {
            assert!(generator(op).is_some(), "{op}");
        }
        // Pointwise ops share a kernel; some of each kind are enough.
        let kinds = UnaryKind::ALL.iter().map(|k| k.name());
        let kinds = kinds.chain(BinaryKind::ALL.iter().map(|k| k.name()));
        let kinds: Vec<&str> = kinds.chain(GluKind::ALL.iter().map(|k| k.name())).collect();
        for op in Op::NAMES.iter().copied().flatten() {
            let without_cases = generator(op).is_none() || *op == "opaque";
            assert!(without_cases || kinds.contains(op) || known(op), "{op}");
        }
    }
}
