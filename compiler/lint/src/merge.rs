//! Merging of findings from several layers or device counts.
//!
//! Findings are merged if their codes, entities, messages and helps are equal without the layers
//! ([`Message::without_layers`]). Findings for several device counts are compared without the numbers in their
//! messages.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::baseline_state::BaselineState;
use tpc_diag::{Code, Diagnostic, Entity, Message};

/// A diagnostic and its number of occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The first merged diagnostic.
    #[serde(flatten)]
    pub diagnostic: Diagnostic,
    /// The number of merged diagnostics for one device count.
    pub count: usize,
    /// The affected layers, in order.
    pub layers: Vec<u32>,
    /// The affected entities.
    pub entities: Vec<Entity>,
    /// The affected device counts; empty if the finding is independent of devices.
    pub devices: Vec<usize>,
    /// True if the message's numbers depend on the device count.
    pub varies: bool,
    /// The message for each of `devices` if the numbers vary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// True if an option turned the finding into an error.
    pub denied: bool,
    /// The relation to the accepted findings; `None` without such a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineState>,
    /// The line of the sources that makes the op; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Origin {
    /// The path, relative to the folder of the sources.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

/// The parts of a diagnostic that are independent of layers and device counts.
type Kind = (&'static Code, Entity, Message);

impl Finding {
    fn new(diagnostic: Diagnostic) -> Finding {
        Finding {
            count: 0,
            layers: Vec::new(),
            entities: Vec::new(),
            devices: Vec::new(),
            varies: false,
            messages: Vec::new(),
            denied: false,
            baseline: None,
            origin: None,
            diagnostic,
        }
    }

    fn kind(&self) -> Kind {
        let d = &self.diagnostic;
        (
            d.code,
            d.entity.without_layer(),
            d.message.without_numbers(),
        )
    }

    /// Returns the kind as a text that is stable between runs.
    fn pattern(&self) -> String {
        let (code, entity, message) = self.kind();
        format!("{code}\n{entity}\n{message}")
    }

    /// Returns the hash of the kind, stable between runs, machines and versions.
    pub fn fingerprint(&self) -> String {
        // The 64-bit FNV-1a hash.
        let hash = self
            .pattern()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |h: u64, b| {
                (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{hash:016x}")
    }

    /// True if the finding is on the list of accepted findings.
    pub fn is_accepted(&self) -> bool {
        self.baseline == Some(BaselineState::Unchanged)
    }

    /// Returns the message with the layers and device counts if several.
    pub fn message(&self) -> String {
        let mut out = match self.messages.as_slice() {
            [] => self.diagnostic.message.to_string(),
            all => Message::alongside(all).to_string(),
        };
        if self.count > 1 {
            out.push_str(&format!("; {} times", self.count));
            match self.layers.as_slice() {
                [] => {}
                [one] => out.push_str(&format!(", in layer {one}")),
                all => out.push_str(&format!(", in layers {}", numbers(all))),
            }
        }
        let all = self.devices.iter();
        let all: Vec<u32> = all.filter_map(|&n| u32::try_from(n).ok()).collect();
        match all.as_slice() {
            [] => {}
            [1] => out.push_str(" [1 device]"),
            all if self.varies => {
                let each: Vec<String> = all.iter().map(ToString::to_string).collect();
                out.push_str(&format!(" [{} devices]", each.join(" / ")));
            }
            all => out.push_str(&format!(" [{} devices]", numbers(all))),
        }
        out
    }

    /// Adds the findings for another device count. A finding with a known kind, help and count only adds its device
    /// count and message.
    pub fn join(all: &mut Vec<Finding>, devices: usize, found: Vec<Finding>) {
        // A help applies to one device count.
        let key = |f: &Finding| (f.kind(), f.diagnostic.help.clone(), f.count);
        let before: BTreeMap<_, usize> = all
            .iter()
            .enumerate()
            .rev()
            .map(|(i, f)| (key(f), i))
            .collect();
        for mut f in found {
            let known = before.get(&key(&f)).map(|&i| &mut all[i]);
            match known.filter(|a| a.devices.last() != Some(&devices)) {
                Some(a) => {
                    a.varies |= a.diagnostic.message != f.diagnostic.message;
                    a.messages
                        .resize(a.devices.len(), a.diagnostic.message.clone());
                    a.messages.push(f.diagnostic.message);
                    a.devices.push(devices);
                }
                None => {
                    f.devices = vec![devices];
                    all.push(f);
                }
            }
        }
        all.iter_mut()
            .filter(|f| !f.varies)
            .for_each(|f| f.messages.clear());
    }
}

/// Formats sorted numbers as ranges: `0–3, 5, 7–9`.
pub fn numbers(all: &[u32]) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut i = 0;
    while i < all.len() {
        let mut j = i;
        while j + 1 < all.len() && all[j + 1] == all[j] + 1 {
            j += 1;
        }
        match j - i {
            0 => out.push(all[i].to_string()),
            1 => out.extend([all[i].to_string(), all[j].to_string()]),
            _ => out.push(format!("{}–{}", all[i], all[j])),
        }
        i = j + 1;
    }
    out.join(", ")
}

/// Merges diagnostics that differ only in the layer, in order of first occurrence.
pub fn merge(found: Vec<Diagnostic>) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    let mut known = BTreeMap::new();
    for d in found {
        let key = (
            d.code,
            d.entity.without_layer(),
            d.message.without_layers(),
            d.help.as_ref().map(Message::without_layers),
        );
        let at = *known.entry(key).or_insert(out.len());
        let layer = d.entity.name.layer().or_else(|| d.message.layer());
        let entity = d.entity.clone();
        if at == out.len() {
            out.push(Finding::new(d));
        }
        let f = &mut out[at];
        f.count += 1;
        f.layers.extend(layer);
        f.entities.push(entity);
    }
    for f in &mut out {
        f.layers.sort_unstable();
        f.layers.dedup();
        f.entities.dedup();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpc_diag::{Name, Quantity, message};

    static SAMPLE: Code = Code::warning("TPC0301", "a sample", "A sample.");

    fn warning(entity: Name, message: impl Into<Message>) -> Diagnostic {
        Diagnostic::new(&SAMPLE, entity, message)
    }

    fn tensor(layer: u32) -> Name {
        Name::of_layer("blk.", layer, ".ffn_up.weight")
    }

    #[test]
    fn ranges_of_numbers() {
        assert_eq!(numbers(&[0, 1, 2, 3, 5, 7, 8]), "0–3, 5, 7, 8");
        assert_eq!(numbers(&[]), "");
    }

    #[test]
    fn layers_make_one_finding() {
        let found = (0..80).map(|l| warning(tensor(l), message!("{} is odd", tensor(l))));
        let found = merge(found.collect());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].count, found[0].layers.len()), (80, 80));
        let message = found[0].message();
        assert_eq!(
            message,
            "blk.0.ffn_up.weight is odd; 80 times, in layers 0–79"
        );
    }

    #[test]
    fn other_numbers_tell_findings_apart() {
        let result = |l| Name::of_layer("Qcur-", l, "");
        let found = merge(vec![
            warning(tensor(0), message!("needs {} blocks", 4_u64)),
            warning(tensor(1), message!("needs {} blocks", 5_u64)),
            warning(result(3), "x"),
            warning(result(4), "x"),
            warning(Name::plain("-3"), "x"),
            warning(Name::plain("-4"), "x"),
        ]);
        let counts: Vec<usize> = found.iter().map(|f| f.count).collect();
        assert_eq!(counts, [1, 1, 2, 1, 1]);
    }

    #[test]
    fn a_time_is_no_layer() {
        for message in [
            Message::from("split by layer 43.44 ms"),
            message!("split by layer {} ms", Quantity("43.44")),
        ] {
            let found = merge(vec![warning(Name::plain("plan"), message)]);
            assert_eq!(found[0].layers, [0_u32; 0]);
            assert_eq!(found[0].message(), "split by layer 43.44 ms");
        }
    }

    #[test]
    fn numbers_of_devices_are_listed() {
        let mut all = Vec::new();
        for n in [2, 3, 5] {
            let d = warning(Name::plain("plan"), message!("{} copies", n));
            Finding::join(&mut all, n, merge(vec![d.clone(), d]));
        }
        assert_eq!(all.len(), 1);
        let message = all[0].message();
        assert_eq!(message, "2/3/5 copies; 2 times [2 / 3 / 5 devices]");
    }

    #[test]
    fn numbers_that_do_not_vary_are_told_once() {
        let mut all = Vec::new();
        for n in [2, 3, 4] {
            let d = warning(
                Name::plain("plan"),
                message!("{} copies of {}", n / 4, 7_u64),
            );
            Finding::join(&mut all, n, merge(vec![d]));
        }
        assert_eq!(all.len(), 1);
        let message = all[0].message();
        assert_eq!(message, "0/0/1 copies of 7 [2 / 3 / 4 devices]");
    }

    #[test]
    fn advice_stays_with_its_number_of_devices() {
        let mut all = Vec::new();
        for n in [2, 3] {
            let d = warning(Name::plain("plan"), "it does not fit").help(message!("-c {}", n));
            Finding::join(&mut all, n, merge(vec![d]));
        }
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].message(), "it does not fit [3 devices]");
    }
}
