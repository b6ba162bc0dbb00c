//! One finding for what several layers, or several numbers of devices, have in common.

use serde::Serialize;

use tpc_diag::Diagnostic;

/// A diagnostic, and how often it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The first of those that are alike.
    #[serde(flatten)]
    pub diagnostic: Diagnostic,
    /// How many were found for one number of devices.
    pub count: usize,
    /// The layers that they are in, in order.
    pub layers: Vec<u32>,
    /// What they concern.
    pub entities: Vec<String>,
    /// The numbers of devices for which they were found; empty where devices do not matter.
    pub devices: Vec<usize>,
    /// Whether the numbers in the message are those of the first of `devices` only.
    pub varies: bool,
    /// Whether an option made an error of it.
    pub denied: bool,
    /// What those that are alike have in common.
    #[serde(skip)]
    pub pattern: String,
}

impl Finding {
    /// The message with the layers and the numbers of devices, where there are several.
    pub fn message(&self) -> String {
        let mut out = self.diagnostic.message.clone();
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
            [first, rest @ ..] if self.varies => {
                out.push_str(&format!(" [{first} devices; alike with {}]", numbers(rest)));
            }
            all => out.push_str(&format!(" [{} devices]", numbers(all))),
        }
        out
    }
}

/// Numbers as ranges: `0–3, 5, 7–9`. They are in order.
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

/// A text with a star for every number of a layer, and the first such number: `blk.7.ffn_up` and `Qcur-7` are alike in
/// all layers.
fn pattern(text: &str) -> (String, Option<u32>) {
    const BEFORE: [&str; 4] = ["blk.", "-", "_l", "layer "];
    let mut out = String::with_capacity(text.len());
    let mut layer = None;
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let digits = &rest[..end];
        let after = rest[end..].chars().next();
        if out.ends_with("line ") {
            // A place, not a difference.
            out.push('*');
            rest = &rest[end..];
            continue;
        }
        let numbered = BEFORE.iter().any(|b| out.ends_with(b))
            && (!out.ends_with('-') || letter_before(&out))
            && after.is_none_or(|c| !c.is_alphanumeric());
        if numbered {
            out.push('*');
            layer = layer.or_else(|| digits.parse().ok());
        } else {
            out.push_str(digits);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    (out, layer)
}

/// Whether a letter stands before the last sign.
fn letter_before(text: &str) -> bool {
    text.chars().nth_back(1).is_some_and(char::is_alphanumeric)
}

/// A text with a star for every number.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '0'..='9' | '.' if out.ends_with('*') => {}
            '0'..='9' => out.push('*'),
            c => out.push(c),
        }
    }
    out
}

/// Diagnostics that are alike but for the layer, as one finding each, in the order of the first.
pub fn merged(found: Vec<Diagnostic>) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    let mut known = std::collections::BTreeMap::new();
    for d in found {
        let (entity, of_entity) = pattern(&d.entity);
        let (message, of_message) = pattern(&d.message);
        let help = d.help.as_deref().map_or_else(String::new, |h| pattern(h).0);
        let common = format!("{}\n{entity}\n{message}\n{help}", d.code);
        let at = *known.entry(common).or_insert(out.len());
        let layer = of_entity.or(of_message);
        match out.get_mut(at) {
            Some(f) => {
                f.count += 1;
                f.layers.extend(layer);
                f.entities.push(d.entity);
            }
            None => out.push(Finding {
                pattern: format!("{}\n{entity}\n{}", d.code, without_numbers(&message)),
                count: 1,
                layers: layer.into_iter().collect(),
                entities: vec![d.entity.clone()],
                devices: Vec::new(),
                varies: false,
                denied: false,
                diagnostic: d,
            }),
        }
    }
    for f in &mut out {
        f.layers.sort_unstable();
        f.layers.dedup();
        f.entities.dedup();
    }
    out
}

impl Finding {
    /// Adds what was found for another number of devices: numbers in the message apart, what was found before is told
    /// once, with the message of the first.
    pub fn join(all: &mut Vec<Finding>, devices: usize, found: Vec<Finding>) {
        let before = all.len();
        for mut f in found {
            let same = all[..before].iter_mut().find(|a| a.pattern == f.pattern);
            match same {
                Some(a) => {
                    if a.devices.last() != Some(&devices) {
                        a.devices.push(devices);
                    }
                    a.varies |= a.diagnostic.message != f.diagnostic.message;
                }
                None => {
                    f.devices = vec![devices];
                    all.push(f);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpc_diag::Code;

    static SAMPLE: Code = Code::warning("TPC0301", "a sample", "A sample.");

    fn warning(entity: &str, message: &str) -> Diagnostic {
        Diagnostic::new(&SAMPLE, entity, message)
    }

    #[test]
    fn ranges_of_numbers() {
        assert_eq!(numbers(&[0, 1, 2, 3, 5, 7, 8]), "0–3, 5, 7, 8");
        assert_eq!(numbers(&[]), "");
    }

    #[test]
    fn layers_make_one_finding() {
        let found = (0..80).map(|l| {
            let name = format!("blk.{l}.ffn_up.weight");
            warning(&name, &format!("{name} is odd"))
        });
        let found = merged(found.collect());
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
        let found = merged(vec![
            warning("blk.0.a", "needs 4 blocks"),
            warning("blk.1.a", "needs 5 blocks"),
            warning("Qcur-3", "x"),
            warning("Qcur-4", "x"),
            warning("-3", "x"),
            warning("-4", "x"),
        ]);
        let counts: Vec<usize> = found.iter().map(|f| f.count).collect();
        assert_eq!(counts, [1, 1, 2, 1, 1]);
    }

    #[test]
    fn numbers_of_devices_are_listed() {
        let mut all = Vec::new();
        for n in [2, 3, 5] {
            let d = warning("plan", &format!("{n} copies"));
            Finding::join(&mut all, n, merged(vec![d.clone(), d]));
        }
        assert_eq!(all.len(), 1);
        let message = all[0].message();
        assert_eq!(message, "2 copies; 2 times [2 devices; alike with 3, 5]");
    }
}
