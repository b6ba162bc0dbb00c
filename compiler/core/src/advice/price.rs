use tpc_passes::machine::Workload;

use super::change::Change;
use crate::format::bytes;
use crate::pipeline::Estimate;
use crate::placement::{Placement, SplitMode};

/// Minimum relative difference between times that matters, even for exact estimates.
pub(super) const LEAST_ERROR: f64 = 0.05;

/// Computes the microseconds per generated token, including its share of prompt tokens.
pub(super) fn per_token(estimate: &Estimate) -> f64 {
    let prompt = 1e6 / estimate.prompt_tps.max(1e-9);
    1e6 / estimate.decode_tps.max(1e-9) + Workload::PROMPT_WEIGHT * prompt
}

/// A fitting configuration, with its speed and losses.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The changed options, as text.
    pub options: String,
    /// The changed options.
    pub changes: Vec<Change>,
    /// The placement with these changes.
    pub placement: Placement,
    /// The split mode.
    pub mode: SplitMode,
    /// Estimated tokens per second.
    pub decode_tps: f64,
    /// Estimated prompt tokens per second.
    pub prompt_tps: f64,
    /// The depth of the estimates, in tokens.
    pub depth: u64,
    /// The used fraction of the fullest device's memory; `None` if no memory is known.
    pub fullest: Option<f64>,
    /// Bytes on the host.
    pub host_bytes: u64,
    /// The losses as text; empty without losses.
    pub price: String,
    /// Microseconds per generated token, including its share of prompt tokens.
    pub us_per_token: f64,
}

impl Advice {
    /// Formats the speeds and losses: `21 t/s, prompts 310 t/s at depth 4096; context 16384 instead of 131072`.
    pub fn worth(&self) -> String {
        let mut out = format!(
            "{} t/s, prompts {} t/s at depth {}",
            speed(self.decode_tps),
            speed(self.prompt_tps),
            self.depth
        );
        if !self.price.is_empty() {
            out.push_str("; ");
            out.push_str(&self.price);
        }
        out
    }
}

fn speed(tps: f64) -> String {
    match tps {
        t if t >= 100.0 => format!("{t:.0}"),
        t if t >= 10.0 => format!("{t:.1}"),
        t => format!("{t:.2}"),
    }
}

pub(super) fn price(changes: &[Change], host_bytes: u64) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut on_host = false;
    for change in changes {
        match change {
            Change::Mode(_) | Change::MainDevice(_) | Change::Shares(_) => {}
            Change::Overrides {
                layers, experts, ..
            } => {
                on_host = true;
                let what = if *experts {
                    "experts"
                } else {
                    "feed-forward weights"
                };
                out.push(format!("{what} of {layers} more layers on the host"));
            }
            Change::HostExperts(0) => out.push("all experts on the devices".to_owned()),
            Change::HostExperts(n) => {
                on_host = true;
                out.push(format!("experts of {n} layers on the host"));
            }
            Change::GpuLayers { kept, all } if kept >= all => {
                out.push("all layers on the devices".to_owned());
            }
            Change::GpuLayers { kept, all } => {
                on_host = true;
                out.push(format!("{} of {all} layers on the host", all - kept));
            }
            Change::KvOnHost => {
                on_host = true;
                out.push("caches on the host".to_owned());
            }
            Change::Caches { asked, types } => {
                let shown = |[k, v]: &[tpc_ir::DType; 2]| match k == v {
                    true => k.to_string(),
                    false => format!("{k} and {v}"),
                };
                out.push(format!(
                    "caches {} instead of {}",
                    shown(types),
                    shown(asked)
                ));
            }
            Change::Context { asked, ctx_size } => {
                out.push(format!("context {ctx_size} instead of {asked}"));
            }
            Change::Sequences { asked, count } => {
                out.push(format!("{count} sequences instead of {asked}"));
            }
            Change::Batch(n) => out.push(format!("batches of {n}")),
        }
    }
    if on_host {
        out.push(format!("the host holds {}", bytes(host_bytes)));
    }
    out.join(", ")
}

/// The missing memory if no configuration fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The fullest device, or `host`.
    pub place: String,
    /// Missing bytes of the smallest planned configuration.
    pub bytes: u64,
    /// The options of that configuration.
    pub options: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_says_what_is_given_up() {
        let changes = [
            Change::Mode(SplitMode::Layer),
            Change::HostExperts(5),
            Change::Context {
                asked: 131_072,
                ctx_size: 16_384,
            },
        ];
        let shown: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(shown.join(" "), "-sm layer -ncmoe 5 -c 16384");
        assert_eq!(
            price(&changes, 3 << 30),
            "experts of 5 layers on the host, context 16384 instead of 131072, the host holds 3.00 GiB"
        );
        assert_eq!(price(&changes[..1], 3 << 30), "");
        assert_eq!(
            [speed(123.4), speed(12.34), speed(1.234)],
            ["123", "12.3", "1.23"]
        );
    }
}
