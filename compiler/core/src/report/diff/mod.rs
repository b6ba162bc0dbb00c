mod snapshot;
mod text;

pub use snapshot::{NoSnapshot, Snapshot};
pub use text::render_diff;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::kinds::suffix;
use crate::format::lens;
use snapshot::{Bytes, Finding, Tensor};
use tpc_diag::FormatVersion;

/// The changes between two plans.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlanDiff {
    /// Format version.
    pub tpc: FormatVersion,
    /// The file with the earlier plan.
    pub since: String,
    /// True if architecture, name, layers and parameters are equal. Otherwise tensors are not compared.
    pub same_model: bool,
    /// Description of the model in both plans.
    pub models: Change<String>,
    /// Changed facts: `verdict`, `split_mode`, `context`, `engine`, `depth`, `decode_tps` and so on.
    pub changed: Vec<FactChange>,
    /// Places with changed bytes.
    pub places: Vec<PlaceChange>,
    /// Tensors with changed type, place or split. Equal layers have one entry.
    pub tensors: Vec<TensorChange>,
    /// Findings that only the newer plan has.
    pub new_findings: Vec<FindingReport>,
    /// Findings that only the earlier plan has.
    pub gone_findings: Vec<FindingReport>,
}

/// A value in both plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change<T> {
    /// The earlier value.
    pub old: T,
    /// The newer value.
    pub new: T,
}

/// A changed fact.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FactChange {
    /// The name.
    pub what: &'static str,
    /// The earlier value.
    pub old: Fact,
    /// The newer value.
    pub new: Fact,
}

/// A fact of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Fact {
    /// A word.
    Word(String),
    /// A count.
    Count(u64),
    /// Tokens per second.
    Speed(f64),
}

/// A place with changed bytes. Values of a plan without this place are `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlaceChange {
    /// Name in the newer plan, or else in the earlier plan.
    pub name: String,
    /// Earlier bytes.
    pub old_bytes: Option<u64>,
    /// Newer bytes.
    pub new_bytes: Option<u64>,
    /// Earlier memory size in bytes.
    pub old_capacity_bytes: Option<u64>,
    /// Newer memory size in bytes.
    pub new_capacity_bytes: Option<u64>,
}

/// Tensors with the same change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TensorChange {
    /// The name without the layer.
    pub tensor: String,
    /// The layers; empty outside layers.
    pub layers: Vec<u32>,
    /// Place and split in the earlier plan, and the type if changed; `None` if absent.
    pub old: Option<String>,
    /// Place and split in the newer plan, and the type if changed; `None` if absent.
    pub new: Option<String>,
}

/// A finding of only one plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingReport {
    /// The code.
    pub code: String,
    /// The entity that the finding is about.
    pub entity: String,
    /// The message.
    pub message: String,
}

impl PlanDiff {
    /// Compares `old`, from the file `since`, with `new`.
    pub fn new(since: &str, old: &Snapshot, new: &Snapshot) -> PlanDiff {
        let key = |s: &Snapshot| {
            let m = &s.model;
            (m.arch.clone(), m.name.clone(), m.n_layer, m.n_params)
        };
        let same_model = key(old) == key(new);
        let tensors = match same_model {
            true => tensors(&old.tensors, &new.tensors),
            false => Vec::new(),
        };
        PlanDiff {
            tpc: FormatVersion,
            since: since.to_owned(),
            same_model,
            models: Change {
                old: model(old),
                new: model(new),
            },
            changed: facts(old, new),
            places: places(old, new),
            tensors,
            new_findings: findings(&new.diagnostics, &old.diagnostics),
            gone_findings: findings(&old.diagnostics, &new.diagnostics),
        }
    }

    /// True if the plans are equal.
    pub fn is_empty(&self) -> bool {
        self.same_model
            && self.changed.is_empty()
            && self.places.is_empty()
            && self.tensors.is_empty()
            && self.new_findings.is_empty()
            && self.gone_findings.is_empty()
    }
}

fn model(s: &Snapshot) -> String {
    let m = &s.model;
    let (params, bytes) = (
        crate::format::count(m.n_params),
        crate::format::bytes(m.bytes),
    );
    format!(
        "{} ({}, {} layers, {params}, {bytes})",
        m.name, m.arch, m.n_layer
    )
}

fn facts(old: &Snapshot, new: &Snapshot) -> Vec<FactChange> {
    let word = |s: &str| Some(Fact::Word(s.to_owned()));
    let speed = |tps: Option<f64>, tokens: f64, us: f64| {
        tps.or_else(|| (us > 0.0 && tokens > 0.0).then(|| tokens * 1e6 / us))
            .map(Fact::Speed)
    };
    let of = |s: &Snapshot| -> [(&'static str, Option<Fact>); 10] {
        let e = &s.estimate;
        [
            ("model", word(&s.model.path)),
            ("model_bytes", Some(Fact::Count(s.model.bytes))),
            ("verdict", word(&s.verdict)),
            ("split_mode", word(&s.split_mode)),
            ("context", Some(Fact::Count(s.model.n_ctx))),
            ("devices", Some(Fact::Count(s.devices.len() as u64))),
            ("engine", e.engine.as_deref().and_then(word)),
            ("depth", e.depth.map(Fact::Count)),
            ("decode_tps", speed(e.decode_tps, 1.0, e.decode_us)),
            // Prompt times need the batch size to become speeds.
            ("prompt_tps", e.prompt_tps.map(Fact::Speed)),
        ]
    };
    let pairs = of(old).into_iter().zip(of(new));
    pairs
        .filter_map(|((what, old), (_, new))| {
            let (old, new) = (old?, new?);
            (!alike(&old, &new)).then_some(FactChange { what, old, new })
        })
        .collect()
}

/// True if two facts are equal. Speeds are compared after rounding.
fn alike(a: &Fact, b: &Fact) -> bool {
    match (a, b) {
        (Fact::Speed(a), Fact::Speed(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => a == b,
    }
}

fn places(old: &Snapshot, new: &Snapshot) -> Vec<PlaceChange> {
    let change = |old: Option<&Bytes>, new: Option<&Bytes>| {
        let same = match (old, new) {
            (Some(a), Some(b)) => {
                let sizes = |x: &Bytes| {
                    let parts = [x.weights_bytes, x.kv_bytes, x.state_bytes, x.compute_bytes];
                    (parts, x.capacity_bytes)
                };
                sizes(a) == sizes(b)
            }
            _ => false,
        };
        let name = new.or(old).map(|b| b.name.clone()).unwrap_or_default();
        (!same).then_some(PlaceChange {
            name,
            old_bytes: old.map(|b| b.total_bytes),
            new_bytes: new.map(|b| b.total_bytes),
            old_capacity_bytes: old.and_then(|b| b.capacity_bytes),
            new_capacity_bytes: new.and_then(|b| b.capacity_bytes),
        })
    };
    let n = old.devices.len().max(new.devices.len());
    let devices = (0..n).filter_map(|i| change(old.devices.get(i), new.devices.get(i)));
    devices
        .chain(change(Some(&old.host), Some(&new.host)))
        .collect()
}

/// Describes a tensor: `axis 1 on tp0, 2 × 512`, with its type if changed.
fn in_words(t: &Tensor, of: Option<&Tensor>) -> String {
    let split = match t.sharding.axis {
        Some(axis) => format!(
            "axis {axis} on {}, {}",
            t.place,
            lens(&t.sharding.ranges.lens())
        ),
        None => match t.place.as_str() {
            "host" => "host".to_owned(),
            place => format!("whole on {place}"),
        },
    };
    match of {
        Some(other) if other.dtype != t.dtype => format!("{}, {split}", t.dtype),
        _ => split,
    }
}

/// Lists changed tensors. Layers with the same change share an entry.
fn tensors(old: &[Tensor], new: &[Tensor]) -> Vec<TensorChange> {
    let by_name = |all: &'_ [Tensor]| -> BTreeMap<String, Tensor> {
        all.iter().map(|t| (t.name.clone(), t.clone())).collect()
    };
    let (before, after) = (by_name(old), by_name(new));
    let mut out: Vec<TensorChange> = Vec::new();
    let mut note = |t: &Tensor, old: Option<String>, new: Option<String>| {
        if old == new {
            return;
        }
        let tensor = suffix(&t.name);
        let same = |c: &&mut TensorChange| (&c.tensor, &c.old, &c.new) == (&tensor, &old, &new);
        match out.iter_mut().find(same) {
            Some(c) => c.layers.extend(t.layer),
            None => out.push(TensorChange {
                tensor,
                layers: t.layer.into_iter().collect(),
                old,
                new,
            }),
        }
    };
    // Use the order of the newer plan. Tensors that it lacks are last.
    for t in new {
        let old = before.get(&t.name);
        note(t, old.map(|o| in_words(o, Some(t))), Some(in_words(t, old)));
    }
    for t in old.iter().filter(|t| !after.contains_key(&t.name)) {
        note(t, Some(in_words(t, None)), None);
    }
    for c in &mut out {
        c.layers.sort_unstable();
    }
    out
}

/// Lists the findings of `all` that are not in `others`. Compares code and entity, because messages contain numbers.
fn findings(all: &[Finding], others: &[Finding]) -> Vec<FindingReport> {
    let key = |f: &Finding| (f.code.clone(), f.entity.clone());
    let mut left: BTreeMap<(String, String), usize> = BTreeMap::new();
    for f in others {
        *left.entry(key(f)).or_default() += 1;
    }
    let mut out = Vec::new();
    for f in all {
        match left.get_mut(&key(f)) {
            Some(n) if *n > 0 => *n -= 1,
            _ => out.push(FindingReport {
                code: f.code.clone(),
                entity: f.entity.clone(),
                message: f.message.clone(),
            }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(mode: &str, axis: &str, total: u64) -> Snapshot {
        let tensor = |l: u32| {
            format!(
                r#"{{"name":"blk.{l}.attn_q.weight","dtype":"q4_k","ne":[64,64,1,1],"place":"tp0",
                    "sharding":{axis},"kind":"weight","layer":{l}}}"#
            )
        };
        let place = |name: &str| {
            format!(
                r#"{{"name":"{name}","kind":"generic","weights_bytes":{total},"kv_bytes":0,"state_bytes":0,
                    "compute_bytes":0,"total_bytes":{total},"capacity_bytes":null}}"#
            )
        };
        let text = format!(
            r#"{{"tpc":1,"model":{{"path":"a.gguf","arch":"llama","name":"A","n_layer":2,"n_params":10,"bytes":20,"n_ctx":5}},
                "verdict":"ok","split_mode":"{mode}","devices":[{}],"host":{},"tensors":[{},{}],
                "estimate":{{"decode_us":{},"prefill_us":2.0}},"diagnostics":[
                {{"code":"TPC0306","severity":"note","message":"{total}","entity":"plan","help":null}}]}}"#,
            place("dev0"),
            place("host"),
            tensor(0),
            tensor(1),
            if mode == "tensor" { 1000.0 } else { 2000.0 },
        );
        Snapshot::from_json(text.as_bytes()).expect("a plan")
    }

    const SPLIT: &str = r#"{"kind":"split","axis":1,"ranges":[[0,32],[32,32]]}"#;
    const WHOLE: &str = r#"{"kind":"mirrored","axis":null,"ranges":[]}"#;

    #[test]
    fn a_plan_does_not_differ_from_itself() {
        let p = plan("tensor", SPLIT, 7);
        let diff = PlanDiff::new("a", &p, &p);
        assert!(diff.is_empty(), "{diff:?}");
    }

    #[test]
    fn changes_are_told_once_for_alike_layers() {
        let diff = PlanDiff::new("a", &plan("layer", WHOLE, 9), &plan("tensor", SPLIT, 7));
        let facts: Vec<&str> = diff.changed.iter().map(|c| c.what).collect();
        assert_eq!(facts, ["split_mode", "decode_tps"]);
        let [t] = diff.tensors.as_slice() else {
            panic!("{:?}", diff.tensors)
        };
        assert_eq!(t.layers, [0, 1]);
        assert_eq!(t.old.as_deref(), Some("whole on tp0"));
        assert_eq!(t.new.as_deref(), Some("axis 1 on tp0, 2 × 32"));
        assert_eq!(diff.places.len(), 2);
        // A message with another number is the same finding.
        assert_eq!((diff.new_findings.len(), diff.gone_findings.len()), (0, 0));
    }

    #[test]
    fn tensors_of_another_model_are_not_compared() {
        let (a, mut b) = (plan("layer", WHOLE, 9), plan("tensor", SPLIT, 7));
        b.model.name = "B".to_owned();
        b.diagnostics.clear();
        let diff = PlanDiff::new("a", &a, &b);
        assert!(!diff.same_model && !diff.is_empty() && diff.tensors.is_empty());
        assert_eq!((diff.new_findings.len(), diff.gone_findings.len()), (0, 1));
    }

    #[test]
    fn what_is_no_plan_is_told_apart() {
        let deep = "[".repeat(100_000);
        type Case<'a> = (&'a str, fn(&NoSnapshot) -> bool);
        let cases: [Case<'_>; 8] = [
            ("", |e| matches!(e, NoSnapshot::Json(_))),
            ("{\"tpc\":", |e| matches!(e, NoSnapshot::Json(_))),
            (&deep, |e| matches!(e, NoSnapshot::Json(_))),
            ("[]", |e| matches!(e, NoSnapshot::Array)),
            ("{}", |e| matches!(e, NoSnapshot::NoPlan(_))),
            ("{\"tpc\":2}", |e| matches!(e, NoSnapshot::Version(_))),
            ("{\"tpc\":1,\"path\":\"x\",\"findings\":[]}", |e| {
                matches!(e, NoSnapshot::NoPlan(_))
            }),
            (
                "{\"tpc\":1,\"verdict\":\"error\",\"diagnostics\":[]}",
                |e| matches!(e, NoSnapshot::Refusal),
            ),
        ];
        for (text, expected) in cases {
            let found = Snapshot::from_json(text.as_bytes()).expect_err("no plan");
            assert!(expected(&found), "{found}");
        }
        assert!(matches!(
            Snapshot::from_json(b"\xff"),
            Err(NoSnapshot::Json(_))
        ));
    }
}
