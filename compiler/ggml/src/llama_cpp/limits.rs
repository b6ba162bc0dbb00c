//! Models that llama.cpp and ik_llama.cpp cannot split by tensors.

use super::limit_codes;
use super::measurement::{Observation, measurement};
use crate::meta::{MAX_DEVICES, REFUSED};
use tpc_ir::Code;

/// The properties of a placement that affect an engine's tensor split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorSplitUse {
    /// The number of devices.
    pub devices: usize,
    /// True if KV caches are on the host.
    pub caches_on_host: bool,
    /// True if experts are on the host.
    pub experts_on_host: bool,
    /// True if attention weights are on the host.
    pub attention_on_host: bool,
    /// True if attention has ALiBi slopes.
    pub slopes: bool,
}

/// The reason why an engine's tensor split fails for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The code for `tpc explain`, if any.
    pub code: Option<&'static Code>,
    /// The engine's behaviour.
    pub why: String,
}

impl Limit {
    fn new(code: &'static Code, why: String) -> Option<Limit> {
        let code = Some(code);
        Some(Limit { code, why })
    }
}

/// Returns why llama.cpp's `-sm tensor` fails for an architecture, if known.
pub fn tensor_split_limit(arch: &str, of: TensorSplitUse) -> Option<Limit> {
    if REFUSED.contains(&arch) {
        return Limit::new(
            &limit_codes::REFUSED_BY_NAME,
            format!("it refuses -sm tensor for {arch}"),
        );
    }
    if of.devices > MAX_DEVICES {
        let why = format!(
            "it splits tensors among at most {MAX_DEVICES} devices, not {}",
            of.devices
        );
        return Limit::new(&limit_codes::MANY_DEVICES, why);
    }
    let measured = measurement(arch);
    if of.caches_on_host {
        let what = match measured.map(|m| m.cache_on_host) {
            Some(Observation::Wrong) => "computes wrong logits",
            Some(Observation::Crash) => "aborts",
            _ => "aborts or computes wrong logits",
        };
        let why = format!("-sm tensor {what} for {arch} with the KV cache on the host");
        return Limit::new(&limit_codes::CACHES_ON_HOST, why);
    }
    if of.slopes {
        let why = "-sm tensor uses wrong ALiBi slopes on all devices but the first".to_owned();
        return Limit::new(&limit_codes::SLOPES, why);
    }
    if of.attention_on_host {
        let why = "-sm tensor aborts with weights of attention on the host".to_owned();
        return Limit::new(&limit_codes::ATTENTION_ON_HOST, why);
    }
    let m = measured?;
    let tried = [
        (m.two, true, ""),
        (m.three, of.devices >= 3, " on three devices"),
        (
            m.experts_on_host,
            of.experts_on_host,
            " with the experts on the host",
        ),
    ];
    let failed = tried.into_iter().filter(|(_, given, _)| *given);
    failed
        .filter_map(|(seen, _, how)| match seen {
            Observation::Crash => Some(("aborts", how)),
            Observation::Wrong => Some(("computes wrong logits", how)),
            Observation::Right | Observation::Untried => None,
        })
        .map(|(what, how)| format!("-sm tensor {what} for {arch}{how}, as measured with 0.5.0"))
        .find_map(|why| Limit::new(&limit_codes::MEASURED_FAILURE, why))
}

/// The architectures that ik_llama.cpp splits with `-sm graph`. Source: its loader at the end of 2025, and pull
/// requests 1388 (March 2026) and 1835 (May 2026).
const GRAPH: [&str; 15] = [
    "llama",
    "qwen3",
    "qwen3moe",
    "qwen3vl",
    "qwen35",
    "qwen35moe",
    "deepseek2",
    "glm-dsa",
    "glm4moe",
    "mistral3",
    "cohere2",
    "mimo2",
    "hunyuan-moe",
    "gpt-oss",
    "ernie4_5-moe",
];

/// Returns why ik_llama.cpp's `-sm graph` does not support an architecture; `None` if supported.
pub fn graph_split_limit(arch: &str) -> Option<Limit> {
    (!GRAPH.contains(&arch)).then(|| Limit {
        code: None,
        why: format!("it splits {arch} by layers instead of with -sm graph"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: TensorSplitUse = TensorSplitUse {
        devices: 2,
        caches_on_host: false,
        experts_on_host: false,
        attention_on_host: false,
        slopes: false,
    };

    #[test]
    fn limits_follow_the_rules_and_the_measurements() {
        let code = |arch, of| tensor_split_limit(arch, of).and_then(|l| l.code.map(|c| c.id));
        assert_eq!(code("llama", PLAIN), None);
        assert_eq!(code("an architecture of tomorrow", PLAIN), None);
        assert_eq!(code("deepseek2", PLAIN), Some("TPC0900"));
        assert_eq!(code("qwen35", PLAIN), Some("TPC0915"));
        assert_eq!(code("lfm2", PLAIN), None);
        assert_eq!(
            code(
                "lfm2",
                TensorSplitUse {
                    devices: 3,
                    ..PLAIN
                }
            ),
            Some("TPC0915")
        );
        assert_eq!(
            code(
                "llama",
                TensorSplitUse {
                    devices: 17,
                    ..PLAIN
                }
            ),
            Some("TPC0907")
        );
        let with = |f: fn(&mut TensorSplitUse)| {
            let mut of = PLAIN;
            f(&mut of);
            of
        };
        assert_eq!(
            code("llama", with(|u| u.caches_on_host = true)),
            Some("TPC0901")
        );
        assert_eq!(code("llama", with(|u| u.slopes = true)), Some("TPC0902"));
        assert_eq!(
            code("llama", with(|u| u.attention_on_host = true)),
            Some("TPC0903")
        );
        assert_eq!(code("qwen3moe", with(|u| u.experts_on_host = true)), None);
        assert_eq!(
            code("qwen2moe", with(|u| u.experts_on_host = true)),
            Some("TPC0915")
        );
    }

    #[test]
    fn the_graph_split_has_a_list() {
        assert_eq!(graph_split_limit("gpt-oss"), None);
        assert_eq!(graph_split_limit("deepseek2"), None);
        assert!(graph_split_limit("mamba").is_some());
    }
}
