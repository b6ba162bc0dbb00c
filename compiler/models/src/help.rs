//! The cure of each error.

use super::error::ArchError;
use super::families::ARCHS;

impl ArchError {
    /// Returns the cure, in a sentence or two.
    pub fn help(&self) -> String {
        const RECONVERT: &str =
            "convert the model again with a current llama.cpp, or correct the key if you edited it";
        match self {
            ArchError::Metadata(e) => e.help(),
            ArchError::Unsupported { .. } => {
                let names: Vec<&str> = ARCHS.iter().map(|a| a.name).collect();
                format!("supported architectures: {}", names.join(", "))
            }
            ArchError::HeadsSelect { limit, .. } => {
                format!("give a context of at most {limit} tokens: `--ctx-size {limit}`")
            }
            ArchError::OutOfRange { .. }
            | ArchError::Contradiction { .. }
            | ArchError::RopeScaling { .. }
            | ArchError::Overflow { .. } => RECONVERT.into(),
            ArchError::EmptyLayer { .. } => {
                "check general.architecture: only hybrid architectures have layers without attention or feed-forward \
                 sublayer, and this is none"
                    .into()
            }
            ArchError::MissingTensor {
                split_experts: true,
                ..
            } => "convert the model again with a current llama.cpp: the file has one tensor per expert, as files from \
                  before April 2024 do"
                .into(),
            ArchError::MissingTensor { .. } => {
                "for a split file check that all shards are there; else convert the model again: the file is incomplete, \
                 has the wrong general.architecture, or lacks a key that decides which tensors it has (`tpc inspect` lists \
                 keys such as block_count and leading_dense_block_count)"
                    .into()
            }
            ArchError::WrongShape { .. } => {
                "convert the model again with a current llama.cpp: either the tensor or the key is wrong".into()
            }
            ArchError::WrongElements { .. } | ArchError::MissingPartner { .. } => {
                "convert the model again with a current llama.cpp".into()
            }
            ArchError::CacheType { option, size, .. } if size.is_multiple_of(32) => format!(
                "give {option} f16, or another of f32 bf16 q8_0 q5_1 q5_0 q4_1 q4_0 iq4_nl"
            ),
            ArchError::CacheType { option, .. } => format!(
                "give {option} f16, f32 or bf16: quantised types store blocks of 32 elements"
            ),
            ArchError::ContextTooLong { limit, .. } => format!("use --ctx-size {limit} or less"),
            ArchError::NoDrafts { arch, .. } => {
                let known = ARCHS.iter().filter(|a| a.drafts.is_some());
                let names: Vec<&str> = known.map(|a| a.name).collect();
                let another = if names.contains(arch) {
                    ", or use a file that was converted with its draft blocks (nextn)"
                } else {
                    ""
                };
                format!(
                    "remove --spec-type{another}; draft blocks are described for {}",
                    names.join(", ")
                )
            }
            ArchError::Inconsistent { .. } => {
                "please report this with the file's header: tpc or its description of the architecture is wrong"
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
