//! A random configuration: command-line options and their placement.

use std::fmt::Write as _;

use tpc_core::placement::{
    DeviceList, HostExperts, MachineRequest, Placement, parse_cache_type, parse_devices,
    parse_overrides, parse_split_mode, parse_tensor_split,
};
use tpc_core::topology::TopologyFile;

use crate::random::Rng;

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) options: Vec<(&'static str, String)>,
    pub(super) topology: String,
}

const PATTERNS: [&str; 16] = [
    ".*weight",
    r"blk\.0\..*",
    r"blk\.\d*[02468]\..*",
    r"blk\.(?!0\.).*",
    ".*attn.*",
    ".*attn_(q|k|v).*",
    ".*attn_output.*",
    ".*norm.*",
    ".*ffn_(up|gate).*",
    ".*ffn_down.*",
    ".*exps.*",
    ".*(gate_inp|bias).*",
    "token_embd.*",
    "output.*",
    ".*ssm.*",
    ".*shexp.*",
];

impl Case {
    pub(super) fn random(rng: &mut Rng, n_layer: u64) -> Case {
        let devices = rng.range(1, 8);
        let mut options = vec![("--devices", devices.to_string())];
        if rng.one_in(2) {
            options.push((
                "-sm",
                (*rng.pick(&["tensor", "layer", "auto", "tensor"])).to_owned(),
            ));
        }
        if rng.one_in(2) {
            options.push(("-ts", shares(rng, devices)));
        }
        for _ in 0..rng.range(0, 2) {
            let place = *rng.pick(&["CPU", "CPU", "mirrored", "dev0", "dev1"]);
            // A missing device is another error.
            if place != "dev1" || devices > 1 {
                options.push(("-ot", format!("{}={place}", rng.pick(&PATTERNS))));
            }
        }
        if rng.one_in(4) {
            options.push(("-ngl", rng.range(0, n_layer + 1).to_string()));
        }
        if rng.one_in(5) {
            options.push(("-ncmoe", rng.range(0, n_layer).to_string()));
        }
        if rng.one_in(5) {
            options.push(("-nkvo", String::new()));
        }
        let types = [
            "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl",
        ];
        for option in ["-ctk", "-ctv"] {
            if rng.one_in(3) {
                options.push((option, (*rng.pick(&types)).to_owned()));
            }
        }
        if rng.one_in(4) {
            options.push(("-c", rng.pick(&[32, 64, 256, 4096]).to_string()));
        }
        if rng.one_in(4) {
            options.push(("-ub", rng.pick(&[1, 7, 64, 512]).to_string()));
        }
        if rng.one_in(6) {
            options.push(("-np", rng.range(1, 4).to_string()));
        }
        let topology = match rng.one_in(4) {
            true => String::new(),
            false => topology(rng, devices),
        };
        Case { options, topology }
    }

    /// Returns the options' placement; `None` if tpc refuses an option.
    pub(super) fn placement(&self) -> Option<Placement> {
        let mut p = Placement::on(parse_devices(&self.options[0].1).ok()?);
        p.split_mode = tpc_core::placement::SplitMode::Auto;
        if !self.topology.is_empty() {
            let file = TopologyFile::from_ron(&self.topology)
                .unwrap_or_else(|e| panic!("{e}\n{}", self.topology));
            let request = MachineRequest {
                list: Some(&DeviceList::Count(p.devices.len())),
                file: Some(&file),
                ..MachineRequest::default()
            };
            p.topology = request.machine().ok()?.topology;
        }
        let n = p.devices.len();
        let mut overrides = Vec::new();
        for (option, value) in &self.options[1..] {
            match *option {
                "-sm" => p.split_mode = parse_split_mode(value).ok()?,
                "-ts" => p.tensor_split = Some(parse_tensor_split(value, n).ok()?),
                "-ot" => overrides.push(value.clone()),
                "-ngl" => p.n_gpu_layers = value.parse().ok(),
                "-ncmoe" => p.host_experts = HostExperts::First(value.parse().ok()?),
                "-nkvo" => p.kv_on_host = true,
                "-ctk" => p.cache_type_k = parse_cache_type(option, value).ok()?,
                "-ctv" => p.cache_type_v = parse_cache_type(option, value).ok()?,
                "-c" => p.ctx_size = value.parse().ok(),
                "-ub" => p.ubatch_size = value.parse().ok()?,
                "-np" => p.parallel = value.parse().ok()?,
                other => panic!("{other} is set by nobody"),
            }
        }
        p.overrides = parse_overrides(&overrides, &p.devices).ok()?;
        Some(p)
    }

    pub(super) fn command(&self, model: &str) -> String {
        let mut out = format!("tpc plan {model}");
        for (option, value) in &self.options {
            let plain = |c: char| c.is_ascii_alphanumeric() || ",._".contains(c);
            let _ = match value.chars().all(plain) {
                true => write!(out, " {option} {value}"),
                false => write!(out, " {option} '{value}'"),
            };
        }
        if !self.topology.is_empty() {
            let _ = write!(out, " --topology t.ron  # t.ron: {}", self.topology);
        }
        out
    }
}

/// Draws device weights: equal, with zeros, or in ratios up to 1000.
fn shares(rng: &mut Rng, devices: u64) -> String {
    loop {
        let one = |_| *rng.pick(&[0, 0, 1, 1, 2, 3, 10, 1000]);
        let all: Vec<u32> = (0..devices).map(one).collect();
        if all.iter().any(|&n| n > 0) {
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            return all.join(",");
        }
    }
}

/// Draws a machine of different devices, with link latencies of 0 to 100 µs.
fn topology(rng: &mut Rng, devices: u64) -> String {
    let bandwidth = ["1e9", "1e10", "1e11", "5e11", "3e12"];
    let flops = ["1e12", "1e13", "2e14"];
    let link = |rng: &mut Rng| {
        let bytes = *rng.pick(&["1e9", "5e10", "1e12", "1e18"]);
        let latency = *rng.pick(&["0.0", "0.0", "0.1", "1.0", "10.0", "100.0"]);
        format!("(bandwidth: {bytes}, latency_us: {latency})")
    };
    let profiles: Vec<String> = (0..devices)
        .map(|d| {
            let (b, f) = (*rng.pick(&bandwidth), *rng.pick(&flops));
            format!("(name: \"d{d}\", memory: None, bandwidth: {b}, flops: {f})")
        })
        .collect();
    let mut links = Vec::new();
    if devices > 1 && rng.one_in(3) {
        links.push(format!(
            "(a: 0, b: {}, link: {})",
            rng.range(1, devices - 1),
            link(rng)
        ));
    }
    let (host, rate) = (
        *rng.pick(&["1e10", "6e10", "1e13"]),
        *rng.pick(&["1e12", "1e13"]),
    );
    format!(
        "Topology(devices: [{}], link: {}, links: [{}], host: (name: \"host\", memory: None, bandwidth: {host}, flops: \
         {rate}), host_link: {})",
        profiles.join(", "),
        link(rng),
        links.join(", "),
        link(rng)
    )
}
