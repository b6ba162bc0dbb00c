use tpc_ggml::engines::Prediction;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The reason, as a clause about the program: "it refuses …".
    pub(super) why: String,
    /// True if the program can run the same options with a split by layers.
    pub(super) layers_instead: bool,
}

impl From<Prediction> for Refusal {
    fn from(p: Prediction) -> Refusal {
        Refusal {
            why: format!("it {} ({})", p.does(), p.code),
            layers_instead: true,
        }
    }
}

impl Refusal {
    pub(super) fn new(why: impl Into<String>) -> Refusal {
        Refusal {
            why: why.into(),
            layers_instead: false,
        }
    }
}
