//! The architectures: a constant per architecture, a file per family.

mod arcee;
mod baichuan;
mod bailing;
mod bloom;
mod command_r;
mod dbrx;
mod deepseek;
mod deepseek2;
mod dots;
mod ernie;
mod exaone;
mod falcon;
mod falcon_h1;
mod gemma;
mod glm;
mod gpt2;
mod gpt_oss;
mod gptneox;
mod granite;
mod hunyuan;
mod internlm;
mod jamba;
mod kimi;
mod lfm2;
mod llama;
mod llama4;
mod mamba;
mod mimo;
mod minicpm;
mod minimax;
mod mpt;
mod muse;
mod nemotron;
mod olmo2;
mod openelm;
mod orion;
mod phi;
mod plamo;
mod pocket_tts;
mod qwen;
mod qwen_hybrid;
mod refact;
mod seed_oss;
mod smollm;
mod stablelm;
mod starcoder;
mod xverse;

use crate::description::Arch;
use crate::error::ArchError;

/// Every supported architecture, by name.
pub const ARCHS: &[&Arch] = &[
    &arcee::ARCEE,
    &baichuan::BAICHUAN,
    &bailing::BAILINGMOE,
    &bailing::BAILINGMOE2,
    &bailing::BAILINGMOE3,
    &bloom::BLOOM,
    &glm::CHATGLM,
    &command_r::COHERE2,
    &command_r::COMMAND_R,
    &dbrx::DBRX,
    &deepseek::DEEPSEEK,
    &deepseek2::DEEPSEEK2,
    &dots::DOTS1,
    &ernie::ERNIE4_5,
    &ernie::ERNIE4_5_MOE,
    &exaone::EXAONE,
    &exaone::EXAONE_MOE,
    &exaone::EXAONE4,
    &falcon::FALCON,
    &falcon_h1::FALCON_H1,
    &gemma::GEMMA,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &gemma::GEMMA4,
    &glm::GLM4,
    &glm::GLM4MOE,
    &gpt_oss::GPT_OSS,
    &gpt2::GPT2,
    &gptneox::GPTNEOX,
    &granite::GRANITE,
    &granite::GRANITEHYBRID,
    &granite::GRANITEMOE,
    &hunyuan::HUNYUAN_DENSE,
    &hunyuan::HUNYUAN_MOE,
    &internlm::INTERNLM2,
    &jamba::JAMBA,
    &kimi::KIMI_K3,
    &kimi::KIMI_LINEAR,
    &lfm2::LFM2,
    &llama::LLAMA,
    &llama4::LLAMA4,
    &mamba::MAMBA,
    &mamba::MAMBA2,
    &mimo::MIMO2,
    &minicpm::MINICPM3,
    &minimax::MINIMAX_01,
    &minimax::MINIMAX_M2,
    &llama::MISTRAL3,
    &deepseek2::MISTRAL4,
    &mpt::MPT,
    &muse::MUSE_GLIMMER,
    &nemotron::NEMOTRON,
    &nemotron::NEMOTRON_H,
    &nemotron::NEMOTRON_H_MOE,
    &olmo2::OLMO2,
    &olmo2::OLMOE,
    &openelm::OPENELM,
    &orion::ORION,
    &phi::PHI2,
    &phi::PHI3,
    &phi::PHIMOE,
    &plamo::PLAMO,
    &plamo::PLAMO2,
    &pocket_tts::POCKETTTS,
    &qwen::QWEN2,
    &qwen::QWEN2MOE,
    &qwen::QWEN2VL,
    &qwen::QWEN3,
    &qwen_hybrid::QWEN35,
    &qwen_hybrid::QWEN35MOE,
    &qwen::QWEN3MOE,
    &qwen_hybrid::QWEN3NEXT,
    &qwen::QWEN3TTS,
    &qwen::QWEN3VL,
    &qwen::QWEN3VLMOE,
    &refact::REFACT,
    &seed_oss::SEED_OSS,
    &smollm::SMOLLM3,
    &stablelm::STABLELM,
    &starcoder::STARCODER,
    &starcoder::STARCODER2,
    &xverse::XVERSE,
];

/// The architecture of that name.
///
/// # Errors
///
/// [`ArchError::Unsupported`], with the nearest name that is supported.
pub fn find(name: &str) -> Result<&'static Arch, ArchError> {
    ARCHS
        .iter()
        .copied()
        .find(|a| a.name == name)
        .ok_or_else(|| ArchError::Unsupported {
            found: tpc_diag::suggest::shorten(name),
            nearest: tpc_diag::suggest::nearest(name, ARCHS.iter().map(|a| a.name)),
        })
}
