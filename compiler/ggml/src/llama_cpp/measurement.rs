//! Measurements: small models of each architecture, run by llama.cpp 0.5.0 with `-sm tensor` on two or three devices. The
//! logits of 48 tokens are compared with its own on one device. Architectures that it refuses by name are left out.

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The logits are right.
    Right,
    /// The logits are wrong, without a message.
    Wrong,
    /// The process aborted.
    Crash,
    /// No run: the architecture has no experts.
    Untried,
}

/// The runs of a small model of an architecture with `-sm tensor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Two devices.
    pub two: Observation,
    /// Two devices, the KV cache on the host.
    pub cache_on_host: Observation,
    /// Two devices, all experts on the host.
    pub experts_on_host: Observation,
    /// Three devices.
    pub three: Observation,
}

use Observation::{Crash, Right, Untried, Wrong};

/// The measurement of an architecture, where there is one.
pub fn measurement(arch: &str) -> Option<Measurement> {
    let (_, [two, cache_on_host, experts_on_host, three]) =
        *MEASURED.iter().find(|(name, _)| *name == arch)?;
    Some(Measurement {
        two,
        cache_on_host,
        experts_on_host,
        three,
    })
}

/// Two devices, the cache on the host, the experts on the host, three devices. With the attention of block 0 on the host,
/// all of them aborted.
const MEASURED: &[(&str, [Observation; 4])] = &[
    ("baichuan", [Right, Crash, Untried, Right]),
    ("bailingmoe2", [Right, Crash, Right, Right]),
    ("bloom", [Wrong, Crash, Untried, Wrong]),
    ("chatglm", [Right, Crash, Untried, Right]),
    ("cohere2", [Right, Crash, Untried, Right]),
    ("command-r", [Right, Crash, Untried, Right]),
    ("dbrx", [Right, Crash, Right, Right]),
    ("deepseek", [Right, Crash, Right, Right]),
    ("ernie4_5-moe", [Right, Wrong, Right, Right]),
    ("exaone4", [Right, Crash, Untried, Right]),
    ("falcon", [Right, Crash, Untried, Right]),
    ("gemma", [Right, Wrong, Untried, Right]),
    ("gemma2", [Right, Wrong, Untried, Right]),
    ("gemma3", [Right, Wrong, Untried, Right]),
    ("glm4", [Right, Crash, Untried, Right]),
    ("glm4moe", [Right, Crash, Right, Right]),
    ("gpt-oss", [Right, Wrong, Right, Right]),
    ("gpt2", [Right, Crash, Untried, Right]),
    ("gptneox", [Right, Crash, Untried, Right]),
    ("granite", [Right, Wrong, Untried, Right]),
    ("hunyuan-moe", [Right, Wrong, Right, Right]),
    ("internlm2", [Right, Crash, Untried, Right]),
    ("lfm2", [Right, Crash, Untried, Wrong]),
    ("llama", [Right, Wrong, Untried, Right]),
    ("llama4", [Right, Wrong, Right, Right]),
    ("mimo2", [Right, Wrong, Right, Right]),
    ("mistral3", [Right, Wrong, Untried, Right]),
    ("nemotron", [Right, Crash, Untried, Right]),
    ("phi2", [Right, Crash, Untried, Right]),
    ("phi3", [Right, Crash, Untried, Right]),
    ("phimoe", [Right, Crash, Right, Right]),
    ("qwen2", [Right, Crash, Untried, Right]),
    ("qwen2moe", [Right, Crash, Crash, Right]),
    ("qwen3", [Right, Wrong, Untried, Right]),
    ("qwen35", [Crash, Crash, Untried, Crash]),
    ("qwen35moe", [Crash, Crash, Crash, Crash]),
    ("qwen3moe", [Right, Wrong, Right, Right]),
    ("qwen3next", [Crash, Crash, Crash, Crash]),
    ("seed_oss", [Right, Wrong, Untried, Right]),
    ("smollm3", [Right, Wrong, Untried, Right]),
    ("stablelm", [Right, Crash, Untried, Right]),
    ("starcoder2", [Right, Crash, Untried, Right]),
];
