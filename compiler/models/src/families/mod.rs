//! All architectures: one constant each, one file per family.

mod afmoe;
mod apertus;
mod arcee;
mod arctic;
mod baichuan;
mod bailing;
mod beam;
mod bert;
mod bloom;
mod chameleon;
mod codeshell;
mod cogvlm;
mod command_r;
mod dbrx;
mod deci;
mod deepseek;
mod deepseek2;
mod deepseek4;
mod diffusion;
mod dots;
mod ernie;
mod exaone;
mod falcon;
mod falcon_h1;
mod flint;
mod gemma;
mod gemma_embedding;
mod glm;
mod gpt2;
mod gpt_oss;
mod gptneox;
mod granite;
mod grok;
mod grovemoe;
mod hrm;
mod hunyuan;
mod internlm;
mod jais;
mod jamba;
mod k2_horizon;
mod kimi;
mod kolibri;
mod laguna;
mod lfm2;
mod limite;
mod llama;
mod llama4;
mod maincoder;
mod maion;
mod mamba;
mod maple;
mod mellum;
mod mimo;
mod minicpm;
mod minimax;
mod modern_bert;
mod mpt;
mod muse;
mod nanbeige;
mod nemotron;
mod olmo2;
mod openelm;
mod orion;
mod pangu;
mod phi;
mod plamo;
mod plm;
mod pocket_tts;
mod qwen;
mod qwen_hybrid;
mod refact;
mod rwkv;
mod seed_oss;
mod sensenova;
mod smallthinker;
mod smollm;
mod spark;
mod stablelm;
mod starcoder;
mod step;
mod talkie;
mod xverse;

use crate::description::Arch;
use crate::error::ArchError;

/// Every supported architecture, by name.
pub const ARCHS: &[&Arch] = &[
    &afmoe::AFMOE,
    &apertus::APERTUS,
    &arcee::ARCEE,
    &arctic::ARCTIC,
    &rwkv::ARWKV7,
    &baichuan::BAICHUAN,
    &bailing::BAILINGMOE,
    &bailing::BAILINGMOE2,
    &bailing::BAILINGMOE3,
    &beam::BEAM,
    &bert::BERT,
    &bloom::BLOOM,
    &chameleon::CHAMELEON,
    &glm::CHATGLM,
    &codeshell::CODESHELL,
    &cogvlm::COGVLM,
    &command_r::COHERE2,
    &command_r::COHERE2MOE,
    &command_r::COMMAND_R,
    &dbrx::DBRX,
    &deci::DECI,
    &deepseek::DEEPSEEK,
    &deepseek2::DEEPSEEK2,
    &deepseek2::DEEPSEEK32,
    &deepseek4::DEEPSEEK4,
    &dots::DOTS1,
    &dots::DOTS3NOTE,
    &diffusion::DREAM,
    &ernie::ERNIE4_5,
    &ernie::ERNIE4_5_MOE,
    &modern_bert::EUROBERT,
    &exaone::EXAONE,
    &exaone::EXAONE_MOE,
    &exaone::EXAONE4,
    &falcon::FALCON,
    &falcon_h1::FALCON_H1,
    &flint::FLINT,
    &gemma::GEMMA,
    &gemma_embedding::GEMMA_EMBEDDING,
    &gemma_embedding::GEMMA_EMBEDDING2,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &gemma::GEMMA4,
    &deepseek2::GLM_DSA,
    &glm::GLM4,
    &glm::GLM4MOE,
    &glm::GLM5_NEXT,
    &gpt_oss::GPT_OSS,
    &gpt2::GPT2,
    &gptneox::GPTNEOX,
    &granite::GRANITE,
    &granite::GRANITE_SWA,
    &granite::GRANITEHYBRID,
    &granite::GRANITEMOE,
    &granite::GRANITESWITCH,
    &grok::GROK,
    &grovemoe::GROVEMOE,
    &hrm::HRM_TEXT,
    &hunyuan::HUNYUAN_DENSE,
    &hunyuan::HUNYUAN_MOE,
    &hunyuan::HUNYUAN_VL,
    &hunyuan::HY_V3,
    &hunyuan::HY_V4,
    &internlm::INTERNLM2,
    &jais::JAIS,
    &jais::JAIS2,
    &jamba::JAMBA,
    &bert::JINA_BERT_V2,
    &bert::JINA_BERT_V3,
    &k2_horizon::K2_HORIZON,
    &kimi::KIMI_K3,
    &kimi::KIMI_LINEAR,
    &kolibri::KOLIBRI1,
    &laguna::LAGUNA,
    &lfm2::LFM2,
    &lfm2::LFM2MOE,
    &lfm2::LFM3,
    &limite::LIMITE,
    &diffusion::LLADA,
    &diffusion::LLADA_MOE,
    &llama::LLAMA,
    &llama4::LLAMA4,
    &maincoder::MAINCODER,
    &maion::MAION_CODER,
    &mamba::MAMBA,
    &mamba::MAMBA2,
    &maple::MAPLE,
    &mellum::MELLUM,
    &mimo::MIMO2,
    &minicpm::MINICPM,
    &minicpm::MINICPM3,
    &minimax::MINIMAX_01,
    &minimax::MINIMAX_M2,
    &minimax::MINIMAX_M3,
    &deepseek2::MISTRAL_LARGE4,
    &llama::MISTRAL3,
    &deepseek2::MISTRAL4,
    &modern_bert::MODERN_BERT,
    &mpt::MPT,
    &muse::MUSE_GLIMMER,
    &muse::MUSE_SPARK,
    &nanbeige::NANBEIGE,
    &nemotron::NEMOTRON,
    &nemotron::NEMOTRON_H,
    &nemotron::NEMOTRON_H_MOE,
    &modern_bert::NEO_BERT,
    &bert::NOMIC_BERT,
    &bert::NOMIC_BERT_MOE,
    &olmo2::OLMO,
    &olmo2::OLMO2,
    &olmo2::OLMOE,
    &openelm::OPENELM,
    &orion::ORION,
    &ernie::PADDLEOCR,
    &pangu::PANGU_EMBEDDED,
    &phi::PHI2,
    &phi::PHI3,
    &phi::PHIMOE,
    &plamo::PLAMO,
    &plamo::PLAMO2,
    &plamo::PLAMO3,
    &plm::PLM,
    &pocket_tts::POCKETTTS,
    &qwen::QWEN,
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
    &qwen_hybrid::QWEN4EXP,
    &refact::REFACT,
    &diffusion::RND1,
    &rwkv::RWKV6,
    &rwkv::RWKV6QWEN2,
    &rwkv::RWKV7,
    &seed_oss::SEED_OSS,
    &sensenova::SENSENOVA_U1,
    &smallthinker::SMALLTHINKER,
    &smollm::SMOLLM3,
    &spark::SPARK2_5,
    &stablelm::STABLELM,
    &starcoder::STARCODER,
    &starcoder::STARCODER2,
    &step::STEP35,
    &talkie::TALKIE,
    &xverse::XVERSE,
];

/// Architectures that tpc knows and refuses, with the property that it lacks.
const REFUSED: &[(&str, &str)] = &[
    (
        "deepseek41",
        "its layers share compressed rows and candidates of indexers, and its n-grams pass a map of the vocabulary",
    ),
    (
        "gptj",
        "llama.cpp reserves the name, but does not compute such models",
    ),
    (
        "vllm-decision2",
        "it scores options that marks in a batch delimit, and has no logits",
    ),
];

/// Returns the architecture `name`.
///
/// # Errors
/// Returns [`ArchError::Unsupported`] with the reason, or with the nearest supported name.
pub fn find(name: &str) -> Result<&'static Arch, ArchError> {
    ARCHS
        .iter()
        .copied()
        .find(|a| a.name == name)
        .ok_or_else(|| {
            let refused = REFUSED.iter().find(|(refused, _)| *refused == name);
            ArchError::Unsupported {
                found: tpc_diag::suggest::shorten(name),
                nearest: tpc_diag::suggest::nearest(name, ARCHS.iter().map(|a| a.name)),
                reason: refused.map(|&(_, reason)| reason),
            }
        })
}
