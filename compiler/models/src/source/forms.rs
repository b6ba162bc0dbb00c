//! Weights that files hold in several forms, such as queries, keys and values fused or separate.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Usual,
    Unusual,
}

/// Expected form of weights with several forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightForms {
    /// The architecture's usual form.
    #[default]
    Usual,
    /// `attn_qkv`, `ffn_gate_up_exps`: several matrices in one tensor.
    Fused,
    /// `attn_q`, `ffn_gate`: one tensor per matrix.
    Separate,
}

impl WeightForms {
    /// True if this tensor, which belongs to `form`, is expected.
    pub(super) fn has(self, name: &str, form: Form) -> bool {
        let is = |suffix: &str| name.ends_with(suffix);
        let fused = is(".attn_qkv.weight") || is(".ffn_gate_up_exps.weight");
        let separate = is(".attn_q.weight") || is(".ffn_gate.weight");
        match self {
            WeightForms::Fused if fused || separate => fused,
            WeightForms::Separate if fused || separate => separate,
            WeightForms::Usual | WeightForms::Fused | WeightForms::Separate => form == Form::Usual,
        }
    }
}
