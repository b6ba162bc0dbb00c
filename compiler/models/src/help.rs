//! The cure of each error.

use super::error::ArchError;
use super::families::ARCHS;

impl ArchError {
    /// The cure, in a sentence or two.
    pub fn help(&self) -> String {
        const RECONVERT: &str =
            "convert the model again with a current llama.cpp, or correct the key if you edited it";
        match self {
            ArchError::Metadata(e) => e.help(),
            ArchError::Unsupported { .. } => {
                let names: Vec<&str> = ARCHS.iter().map(|a| a.name).collect();
                format!("supported are: {}", names.join(", "))
            }
            ArchError::OutOfRange { .. }
            | ArchError::Contradiction { .. }
            | ArchError::RopeScaling { .. }
            | ArchError::Overflow { .. } => RECONVERT.into(),
            ArchError::EmptyLayer { .. } => {
                "layers without attention or feed-forward part belong to hybrid architectures, which this is not; \
                 check general.architecture"
                    .into()
            }
            ArchError::MissingTensor {
                split_experts: true,
                ..
            } => "the file has one tensor per expert, as before April 2024: convert the model again with a current \
                  llama.cpp"
                .into(),
            ArchError::MissingTensor { .. } => {
                "for split files check that all shards are there; else convert the model again: the file is incomplete, \
                 of another architecture than it says, or lacks a key that says which tensors there are (`tpc inspect` \
                 lists keys such as block_count and leading_dense_block_count)"
                    .into()
            }
            ArchError::WrongShape { .. } => {
                "either the tensor or the key is wrong: convert the model again with a current llama.cpp".into()
            }
            ArchError::WrongElements { .. } | ArchError::MissingPartner { .. } => {
                "convert the model again with a current llama.cpp".into()
            }
            ArchError::CacheType { option, size, .. } if size.is_multiple_of(32) => format!(
                "choose f16, or another of f32 bf16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl, with {option}"
            ),
            ArchError::CacheType { option, .. } => format!(
                "choose f16, or else f32 or bf16, with {option}: quantised types store blocks of 32 elements"
            ),
            ArchError::ContextTooLong { limit, .. } => format!("use --ctx-size {limit} or less"),
            ArchError::NoDrafts { arch, .. } => {
                let known = ARCHS.iter().filter(|a| a.drafts.is_some());
                let names: Vec<&str> = known.map(|a| a.name).collect();
                let another = if names.contains(arch) {
                    ", or take a file that was converted with its nextn blocks"
                } else {
                    ""
                };
                format!(
                    "leave out --spec-type{another}; such blocks are described of {}",
                    names.join(", ")
                )
            }
            ArchError::Inconsistent { .. } => {
                "this is an error of tpc or of an architecture's description: please report it with the file's header"
                    .into()
            }
        }
    }
}

impl From<ArchError> for tpc_diag::Diagnostic {
    fn from(e: ArchError) -> tpc_diag::Diagnostic {
        tpc_diag::Diagnostic::new(e.code(), "model", e.to_string()).help(e.help())
    }
}
