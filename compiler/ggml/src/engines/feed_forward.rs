use tpc_gguf::{Header, TensorName};

/// The names of a layer's feed-forward matrices, dense or experts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedForward {
    /// The up projection, possibly fused with the gate.
    pub up: Option<String>,
    /// The gate projection.
    pub gate: Option<String>,
    /// The down projection.
    pub down: Option<String>,
    /// The biases of the up and gate projections.
    pub biases: Vec<String>,
}

/// Parses a `ffn_` name, with or without `_exps`.
fn part(stem: &str) -> Option<(&str, bool, bool)> {
    let rest = stem.strip_prefix("ffn_")?;
    let (rest, is_bias) = match rest.strip_suffix(".weight") {
        Some(rest) => (rest, false),
        None => (rest.strip_suffix(".bias")?, true),
    };
    let (rest, experts) = match rest.strip_suffix("_exps") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    matches!(rest, "up" | "gate" | "gate_up" | "down").then_some((rest, experts, is_bias))
}

impl FeedForward {
    /// Returns a file's feed-forward layers in order of first appearance.
    pub fn of(header: &Header) -> Vec<FeedForward> {
        let mut found: Vec<((u32, bool), FeedForward)> = Vec::new();
        for t in header.tensors() {
            let Some((layer, stem)) = TensorName::parse(&t.name).block() else {
                continue;
            };
            let Some((kind, experts, is_bias)) = part(stem) else {
                continue;
            };
            let key = (layer, experts);
            let at = match found.iter().rposition(|(k, _)| *k == key) {
                Some(at) => at,
                None => {
                    found.push((key, FeedForward::default()));
                    found.len() - 1
                }
            };
            let of = &mut found[at].1;
            match (kind, is_bias) {
                ("down", true) => {}
                (_, true) => of.biases.push(t.name.clone()),
                ("gate", false) => of.gate = Some(t.name.clone()),
                ("down", false) => of.down = Some(t.name.clone()),
                (_, false) => of.up = Some(t.name.clone()),
            }
        }
        found.into_iter().map(|(_, f)| f).collect()
    }

    /// Returns why the split fails with these tensors on the host.
    ///
    /// A host matrix gives every device the whole product, but the other matrices expect a part. `ffn_down` returns
    /// parts to the host, so it may be on the host alone or with `ffn_up`.
    pub fn host_conflict(&self, on_host: &dyn Fn(&str) -> bool) -> Option<String> {
        let hosted = |name: &Option<String>| name.as_deref().is_some_and(on_host);
        let named = |name: &Option<String>| name.clone().unwrap_or_default();
        if hosted(&self.gate) && !hosted(&self.up) {
            return Some(format!(
                "{} is on the host, but {} is not",
                named(&self.gate),
                named(&self.up)
            ));
        }
        if hosted(&self.up) && self.down.is_some() && !hosted(&self.down) {
            return Some(format!(
                "{} is on the host, but {} is not",
                named(&self.up),
                named(&self.down)
            ));
        }
        let mut left = self.biases.iter().filter(|b| !on_host(b));
        let left = left.find(|b| {
            let of = match b.contains("ffn_gate.") || b.contains("ffn_gate_exps.") {
                true => &self.gate,
                false => &self.up,
            };
            hosted(of)
        })?;
        Some(format!(
            "{} is on the host, but {left} is not",
            named(&self.up)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_that_belong_together() {
        let name = |part: &str| Some(format!("blk.0.ffn_{part}.weight"));
        let layer = FeedForward {
            up: name("up"),
            gate: name("gate"),
            down: name("down"),
            biases: Vec::new(),
        };
        let torn = |hosted: &[&str]| {
            let on = |n: &str| hosted.iter().any(|h| n.contains(&format!("ffn_{h}.")));
            layer.host_conflict(&on).is_some()
        };
        for whole in [&[][..], &["down"], &["up", "down"], &["up", "gate", "down"]] {
            assert!(!torn(whole), "{whole:?}");
        }
        for bad in [&["up"][..], &["gate"], &["up", "gate"], &["gate", "down"]] {
            assert!(torn(bad), "{bad:?}");
        }
        assert_eq!(
            part("ffn_gate_up_exps.weight"),
            Some(("gate_up", true, false))
        );
        assert_eq!(
            (part("ffn_norm.weight"), part("ffn_up_shexp.weight")),
            (None, None)
        );
    }
}
