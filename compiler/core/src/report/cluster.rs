//! Several machines: the division, the bytes between machines, and the speed with faster networks.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;
use tpc_ir::Symbol;
use tpc_passes::link_bytes::LinkBytes;
use tpc_passes::machine::{Link, Machines, Network};

use crate::format::{bytes, speed};
use crate::pipeline::CompiledModel;
use crate::placement::Placement;

/// A plan on several machines.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ClusterReport {
    /// The division among machines.
    #[schemars(extend("x-extensible-enum" = DIVISIONS))]
    pub division: &'static str,
    /// Bytes for a decoded token.
    pub token: LinkBytesReport,
    /// Bytes for a token of the largest prompt batch.
    pub prompt_token: LinkBytesReport,
    /// True if a faster network makes decoding or prompts at least 2 % faster.
    pub network_limits: bool,
    /// Speeds with the next faster networks.
    pub faster: Vec<FasterNetwork>,
}

/// Bytes between and inside machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LinkBytesReport {
    /// Bytes between machines, one entry per ordered pair that exchanges data.
    pub between: Vec<PairBytes>,
    /// Bytes between the devices of each machine.
    pub inside: Vec<u64>,
}

/// Bytes from one machine to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PairBytes {
    /// The sending machine.
    pub from: usize,
    /// The receiving machine.
    pub to: usize,
    /// Bytes.
    pub bytes: u64,
}

/// Estimated speeds with another network.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FasterNetwork {
    /// The network.
    pub network: &'static str,
    /// Decoded tokens per second.
    pub decode_tps: f64,
    /// Prompt tokens per second.
    pub prompt_tps: f64,
}

const ONE: &str = "one machine";
const LAYERS: &str = "layers across machines";
const LAYERS_OF_TENSORS: &str = "layers across machines, tensors inside";
const GROUPS: &str = "layers across groups of machines, tensors inside groups";
const TENSORS: &str = "tensors across machines";

const DIVISIONS: [&str; 5] = [ONE, LAYERS, LAYERS_OF_TENSORS, GROUPS, TENSORS];

/// Returns the name of a division of layers among stages.
fn division(machines: &Machines, stages: &[Vec<usize>]) -> &'static str {
    let spans = |stage: &Vec<usize>| machines.group(stage).len() > 1;
    let all = machines.group(&stages.concat()).len();
    match (stages.len(), stages.iter().any(spans)) {
        _ if all < 2 => ONE,
        (1, true) => TENSORS,
        (_, true) => GROUPS,
        (_, false) if stages.iter().any(|s| s.len() > 1) => LAYERS_OF_TENSORS,
        (_, false) => LAYERS,
    }
}

/// Number of faster networks in a report.
const SHOWN: usize = 2;

/// Minimum speed-up that counts.
const FASTER: f64 = 1.02;

impl ClusterReport {
    /// Reports a plan; `None` on one machine, and with RPC servers.
    pub(super) fn new(placement: &Placement, compiled: &CompiledModel) -> Option<ClusterReport> {
        if !placement.is_cluster() {
            return None;
        }
        let machines = &placement.topology.machines;
        let of = |batch, tokens| {
            let n = placement.devices.len();
            let found = LinkBytes::new(&compiled.programs, machines, n, &batch);
            LinkBytesReport::new(&found, tokens)
        };
        let prefill = compiled.request.workload.prefill;
        let faster: Vec<FasterNetwork> = faster(machines.network())
            .map(|n| {
                let estimate = compiled.estimate_over(n.link);
                FasterNetwork {
                    network: n.name,
                    decode_tps: estimate.decode_tps,
                    prompt_tps: estimate.prompt_tps,
                }
            })
            .collect();
        let own = &compiled.estimate;
        let gains = |f: &FasterNetwork| {
            f.decode_tps >= own.decode_tps * FASTER || f.prompt_tps >= own.prompt_tps * FASTER
        };
        Some(ClusterReport {
            division: division(machines, &compiled.resolved.layer_placement.stages),
            token: of(compiled.decode_batch(), 1),
            prompt_token: of(prefill, prefill.get(Symbol::NTokens)),
            network_limits: faster.iter().any(gains),
            faster,
        })
    }

    /// Returns lines about the traffic and about faster networks.
    pub(super) fn lines(&self) -> String {
        let mut out = String::new();
        for (what, traffic) in [("token", &self.token), ("prompt token", &self.prompt_token)] {
            let (between, inside) = (traffic.between_in_words(), traffic.inside_in_words());
            let _ = writeln!(
                out,
                "between machines, per {what}: {between}; inside: {inside}"
            );
        }
        let faster: Vec<String> = (self.faster.iter())
            .map(|f| {
                let (decode, prompt) = (speed(f.decode_tps), speed(f.prompt_tps));
                format!("{} {decode} tokens/s, prompts {prompt}", f.network)
            })
            .collect();
        out.push_str(&match (self.network_limits, faster.is_empty()) {
            (true, _) => format!("with a faster network: {}\n", faster.join("; ")),
            (false, false) => {
                "a faster network would not help: the network is not the limit\n".to_owned()
            }
            (false, true) => String::new(),
        });
        out
    }
}

/// Returns the next networks with more bandwidth and no more latency. Networks of one rate count once, by the lowest
/// latency.
fn faster(link: Link) -> impl Iterator<Item = &'static Network> {
    let mut found: Vec<&'static Network> = Vec::new();
    for n in Network::faster_than(link) {
        match found.last_mut() {
            Some(last) if last.link.bandwidth == n.link.bandwidth => *last = n,
            _ => found.push(n),
        }
    }
    found.into_iter().take(SHOWN)
}

impl LinkBytesReport {
    fn new(found: &LinkBytes, tokens: u64) -> LinkBytesReport {
        let each = |bytes: u64| bytes.div_ceil(tokens.max(1));
        let pair = |(&(from, to), &bytes): (&(usize, usize), &u64)| PairBytes {
            from,
            to,
            bytes: each(bytes),
        };
        LinkBytesReport {
            between: found.between.iter().map(pair).collect(),
            inside: found.inside.iter().copied().map(each).collect(),
        }
    }

    /// Formats the bytes between machines. Equal pairs are counted, and only the largest of different pairs is named.
    fn between_in_words(&self) -> String {
        let total = self
            .between
            .iter()
            .map(|p| p.bytes)
            .fold(0, u64::saturating_add);
        let most = self
            .between
            .iter()
            .max_by_key(|p| (p.bytes, std::cmp::Reverse((p.from, p.to))));
        let Some(most) = most else {
            return bytes(0);
        };
        let alike = self.between.iter().all(|p| p.bytes == most.bytes);
        match (alike, self.between.len()) {
            (_, 1) => format!("{} from machine {} to {}", bytes(total), most.from, most.to),
            (true, n) => format!("{} for each of {n} directions", bytes(most.bytes)),
            (false, _) => format!(
                "{} (at most {}, from machine {} to {})",
                bytes(total),
                bytes(most.bytes),
                most.from,
                most.to
            ),
        }
    }

    fn inside_in_words(&self) -> String {
        let total = self.inside.iter().copied().fold(0, u64::saturating_add);
        bytes(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_have_names() {
        let machines = Machines::new(vec![0, 0, 1, 1], Link::network());
        let named = |stages: &[&[usize]]| {
            let stages: Vec<Vec<usize>> = stages.iter().map(|s| s.to_vec()).collect();
            division(&machines, &stages)
        };
        assert_eq!(named(&[&[0, 1, 2, 3]]), TENSORS);
        assert_eq!(named(&[&[0, 1], &[2, 3]]), LAYERS_OF_TENSORS);
        assert_eq!(named(&[&[0], &[1], &[2], &[3]]), LAYERS);
        assert_eq!(named(&[&[0, 2], &[1, 3]]), GROUPS);
        assert_eq!(named(&[&[1]]), ONE);
    }

    #[test]
    fn faster_networks_of_a_rate_count_once() {
        let names = |name| -> Vec<&str> {
            let link = Network::named(name).expect("a network").link;
            faster(link).map(|n| n.name).collect()
        };
        assert_eq!(names("10gbe"), ["25gbe", "40gbe"]);
        assert_eq!(names("40gbe"), ["ib-edr", "ib-hdr"]);
        assert_eq!(names("ib-ndr"), ["ib-xdr"]);
        assert_eq!(names("ib-xdr"), [""; 0]);
    }

    #[test]
    fn pairs_of_machines_are_summarised() {
        let pair = |from, to, bytes| PairBytes { from, to, bytes };
        let words = |between: Vec<PairBytes>| {
            let inside = Vec::new();
            LinkBytesReport { between, inside }.between_in_words()
        };
        assert_eq!(words(vec![]), "0 B");
        assert_eq!(words(vec![pair(0, 1, 5)]), "5 B from machine 0 to 1");
        let both = vec![pair(0, 1, 5), pair(1, 0, 5)];
        assert_eq!(words(both), "5 B for each of 2 directions");
        let unlike = vec![pair(0, 1, 5), pair(1, 0, 7)];
        assert_eq!(words(unlike), "12 B (at most 7 B, from machine 1 to 0)");
    }
}
