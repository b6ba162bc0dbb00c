//! A placement as command-line options.

use tpc_ir::DType;
use tpc_ir::program::SumOrder;
use tpc_models::Drafting;
use tpc_passes::machine::Network;

use super::{CacheSplit, HostExperts, Placement, SplitMode, spell_devices};

/// Formats numbers for `-ts`. Omits the fraction of whole numbers.
pub fn shares(all: &[f64]) -> String {
    let shown: Vec<String> = all.iter().map(ToString::to_string).collect();
    shown.join(",")
}

impl Placement {
    /// Returns the value of `--devices`, with the network of several machines.
    pub fn device_words(&self) -> String {
        let devices = spell_devices(&self.devices);
        let network = Network::of_link(self.topology.machines.network());
        match network.filter(|_| self.devices.iter().any(|d| d.machine > Some(0))) {
            Some(network) => format!("{devices}@{}", network.name),
            None => devices,
        }
    }

    /// Returns the device options: count, cards or list. Omits the topology file, whose path is unknown here.
    pub fn machine_words(&self) -> Vec<String> {
        let mut out = vec!["--devices".to_owned(), self.device_words()];
        if self.servers.count() > 0 {
            out.extend(["--rpc".to_owned(), self.servers.to_string()]);
        }
        out
    }

    /// Returns all options except machine, engine and depth. Omits a default context. With `--split-mode auto`, the
    /// options request the chosen `mode`. `main` is the device of an unsplit model.
    pub fn option_words(&self, mode: SplitMode, main: Option<usize>) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        let mut put = |words: &[&str]| out.extend(words.iter().map(|&w| w.to_owned()));
        // Groups in sequence lack a mode name; only `auto` chooses them.
        if self.devices.len() > 1 && mode != SplitMode::Hybrid {
            put(&["-sm", mode.name()]);
            if let Some(main) = main.filter(|&d| d > 0) {
                put(&["-mg", &main.to_string()]);
            }
        }
        if let Some(split) = &self.tensor_split {
            put(&["-ts", &shares(split)]);
        }
        for o in &self.overrides {
            put(&["-ot", &o.words()]);
        }
        match self.host_experts {
            HostExperts::NONE => {}
            HostExperts::First(n) => put(&["-ncmoe", &n.to_string()]),
            HostExperts::All => put(&["-cmoe"]),
        }
        if self.kv_on_host {
            put(&["-nkvo"]);
        }
        if self.cache_split != CacheSplit::Auto {
            put(&["--cache-split", self.cache_split.name()]);
        }
        if let Some(n) = self.n_gpu_layers {
            put(&["-ngl", &n.to_string()]);
        }
        if self.cache_type_k != DType::F16 {
            put(&["-ctk", self.cache_type_k.name()]);
        }
        if self.cache_type_v != DType::F16 {
            put(&["-ctv", self.cache_type_v.name()]);
        }
        if let Some(n) = self.ctx_size {
            put(&["-c", &n.to_string()]);
        }
        if self.ubatch_size != Placement::UBATCH {
            put(&["-ub", &self.ubatch_size.to_string()]);
        }
        if self.parallel != 1 {
            put(&["-np", &self.parallel.to_string()]);
        }
        if self.drafting != Drafting::None {
            put(&["--spec-type", "draft-mtp"]);
        }
        if !self.flash_attention {
            put(&["-fa", "off"]);
        }
        match self.sums {
            SumOrder::Auto => {}
            SumOrder::OneDevice => put(&["--deterministic"]),
            SumOrder::Cheapest => put(&["--deterministic", "off"]),
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse_devices, parse_overrides};
    use super::*;

    #[test]
    fn options_are_said_as_people_type_them() {
        let devices = |text| parse_devices(text).expect("a list of devices");
        let mut p = Placement::on(devices("2"));
        assert_eq!(p.machine_words(), ["--devices", "2"]);
        assert_eq!(p.option_words(SplitMode::Layer, None), ["-sm", "layer"]);
        assert_eq!(p.option_words(SplitMode::Hybrid, None), [""; 0]);
        p.tensor_split = Some(vec![3.0, 1.5]);
        p.overrides = parse_overrides(&["a{1,2}=CUDA1,b=CPU".to_owned()], &p.devices)
            .expect("a list of overrides");
        p.host_experts = HostExperts::First(4);
        p.kv_on_host = true;
        p.cache_split = CacheSplit::Cells;
        p.n_gpu_layers = Some(7);
        p.cache_type_v = DType::Q8_0;
        p.ctx_size = Some(4096);
        p.ubatch_size = 2048;
        p.parallel = 2;
        p.drafting = Drafting::Mtp;
        p.sums = SumOrder::Cheapest;
        let words = p.option_words(SplitMode::Tensor, None).join(" ");
        assert_eq!(
            words,
            "-sm tensor -ts 3,1.5 -ot a{1,2}=dev1 -ot b=CPU -ncmoe 4 -nkvo --cache-split cells -ngl 7 -ctv q8_0 -c 4096 -ub 2048 -np 2 \
             --spec-type draft-mtp --deterministic off"
        );
        let p = Placement::on(devices("cpu,cuda:3"));
        assert_eq!(p.machine_words(), ["--devices", "cpu,cuda:3"]);
        let p = Placement::on(devices("1"));
        assert_eq!(p.option_words(SplitMode::None, Some(0)), [""; 0]);
        let p = Placement::on(devices("3"));
        let words = |main| p.option_words(SplitMode::None, main).join(" ");
        assert_eq!(
            (words(Some(0)), words(Some(2))),
            ("-sm none".into(), "-sm none -mg 2".into())
        );
    }
}
