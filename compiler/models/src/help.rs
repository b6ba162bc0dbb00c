use super::drafters::read_by_draft;
use super::error::ArchError;
use super::families::ARCHS;

/// The architecture of llama.cpp's encoders of images and sound.
const ENCODER: &str = "clip";

impl ArchError {
    /// Returns advice in one or two sentences.
    pub fn help(&self) -> String {
        const RECONVERT: &str =
            "convert the model again with a current llama.cpp, or correct the key if you edited it";
        match self {
            ArchError::Metadata(e) => e.help(),
            ArchError::Unsupported { found, .. } if read_by_draft(found).is_some() => {
                "plan the model that it drafts for, with `--model-draft` and this file".into()
            }
            ArchError::Unsupported { found, .. } if found == ENCODER => {
                "the file is an encoder of images or sound (mmproj): give the language model's file; `--mmproj` counts \
                 the encoder's memory"
                    .into()
            }
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
                 network, and this architecture is not hybrid"
                    .into()
            }
            ArchError::MissingTensor {
                split_experts: true,
                ..
            } => "convert the model again with a current llama.cpp: the file has one tensor per expert, like files \
                  from before April 2024"
                .into(),
            ArchError::MissingTensor { .. } => {
                "check that all shards are present, or convert the model again: tensors are missing, or general.architecture \
                 or a count such as block_count is wrong (`tpc inspect` lists the keys)"
                    .into()
            }
            ArchError::WrongShape { .. } => {
                "convert the model again with a current llama.cpp: the tensor or the key is wrong".into()
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
                "this is a bug in tpc: report it with the file's header"
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
