//! What llama.cpp 0.5.0 did with small models of an architecture under `-sm tensor`, on two or three devices: logits of 48
//! tokens against its own on one device. Architectures that it refuses by name are left out.

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The logits are right.
    Right,
    /// They are wrong, and nothing says so.
    Wrong,
    /// The process aborted.
    Crash,
    /// It was not tried: the architecture has no experts.
    Untried,
}

/// What was tried with an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Two devices.
    pub two: Outcome,
    /// The same with the KV cache on the host.
    pub cache_on_host: Outcome,
    /// The same with all experts on the host.
    pub experts_on_host: Outcome,
    /// Three devices.
    pub three: Outcome,
}

use Outcome::{Crash, Right, Untried, Wrong};

/// What was measured of an architecture.
pub fn measured(arch: &str) -> Option<Measured> {
    let (_, [two, cache_on_host, experts_on_host, three]) =
        *MEASURED.iter().find(|(name, _)| *name == arch)?;
    Some(Measured {
        two,
        cache_on_host,
        experts_on_host,
        three,
    })
}

/// Two devices, the cache on the host, the experts on the host, three devices. With the attention of block 0 on the host,
/// all of them aborted.
const MEASURED: &[(&str, [Outcome; 4])] = &[
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
