//! Weights that files hold in one of several forms, such as queries, keys and values fused or separate.

/// The form of a weight, for weights that files hold in several forms: the usual form of the architecture or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Usual,
    Unusual,
}

/// The expected form of weights that files may hold in several forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightForms {
    /// The architecture's usual one.
    #[default]
    Usual,
    /// `attn_qkv`, `ffn_gate_up_exps`: several matrices in one.
    Fused,
    /// `attn_q`, `ffn_gate`: each matrix by itself.
    Separate,
}

impl WeightForms {
    /// Returns true if the tensor of that name is expected. The tensor belongs to the given form.
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
