//! Compares predictions about other engines with observed runs, the rows of `geometry-*.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use tpc_core::placement::parse_overrides;
use tpc_ggml::engines::{Build, Devices, Geometry, Outcome, SplitUse};
use tpc_ggml::llama_cpp::Maker;
use tpc_ir::DType;
use tpc_models::{Drafting, GraphResult, LowerOptions};
use tpc_synth::{Model, Spec};

struct Row {
    spec: String,
    devices: usize,
    options: String,
    result: String,
    build: String,
}

/// The minimum NMSE of wrong logits. Quantised weights reach 1e-3, and 0.014 if rounding chooses other experts.
const WRONG: f64 = 2e-2;

/// Runs that end differently than predicted for an unknown reason: beginning of the specification, and options. Remove
/// a run that ends as predicted.
const UNEXPLAINED: [(&str, &str); 2] = [
    // Predicted: an abort. Observed: wrong logits.
    (
        "qwen3next:layers=4,embd=256,heads=8,kv_heads=8",
        "-ot attn_qkv.*=CPU",
    ),
    // `-ts` leaves the middle device empty. Observed: an abort.
    ("qwen35:layers=4,embd=640,heads=10,kv_heads=5", "-ts 1,0,1"),
];

impl Row {
    fn new(row: &Value) -> Row {
        let text = |key: &str| row[key].as_str().expect(key).to_owned();
        Row {
            spec: text("spec"),
            devices: row["devices"].as_u64().expect("devices") as usize,
            options: text("options"),
            result: text("result"),
            build: text("build"),
        }
    }

    fn seen(&self) -> &'static str {
        match self.result.split_once(':') {
            Some(("refused", _)) => "refused",
            Some(_) => "abort",
            None => match self.result.parse::<f64>() {
                Ok(nmse) if nmse < WRONG => "right",
                Ok(_) => "wrong",
                Err(_) => panic!("a result: {}", self.result),
            },
        }
    }

    fn option(&self, name: &str) -> Option<&str> {
        let mut words = self.options.split_whitespace();
        words.find(|w| *w == name)?;
        words.next()
    }

    fn has(&self, name: &str) -> bool {
        self.options.split_whitespace().any(|w| w == name)
    }
}

fn geometry(spec: &str) -> Geometry {
    let whole = format!("{spec},header=1");
    let parsed = Spec::parse(&whole).unwrap_or_else(|d| panic!("{spec}: {d}"));
    let model = Model::new(parsed, &|_, _, _| Ok(())).unwrap_or_else(|d| panic!("{spec}: {d}"));
    let options = LowerOptions {
        cache_type_k: DType::F16,
        cache_type_v: DType::F16,
        ctx_size: 64,
        drafting: Drafting::None,
        result: GraphResult::Own,
    };
    let lowered = tpc_models::lower(model.header(), &options).ok();
    Geometry::new(model.header(), lowered.as_ref().map(|l| &l.graph))
}

fn runs(line: &str) -> Vec<Row> {
    let of: Value = serde_json::from_str(line).expect("a line of runs");
    let text = |v: &Value| v.as_str().expect("a text").to_owned();
    let run = |run: &Value| Row {
        spec: text(&of["spec"]),
        devices: run[0].as_u64().expect("devices") as usize,
        options: text(&run[1]),
        result: text(&run[2]),
        build: "0.8.0".to_owned(),
    };
    of["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(run)
        .collect()
}

fn rows() -> Vec<Row> {
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a file of rows");
    let own = read(tpc_tests::data().join("engines/geometry-0.8.0.jsonl"));
    let mut out: Vec<Row> = own.lines().flat_map(runs).collect();
    for name in ["geometry-0.8.0.json", "geometry-0.8.0-meta-cpu.json"] {
        let beside = tpc_tests::shared().map(|s| s.join("peer").join(name));
        if let Some(path) = beside.filter(|p| p.exists()) {
            let all: Vec<Value> = serde_json::from_str(&read(path)).expect("rows");
            out.extend(all.iter().map(Row::new));
        }
    }
    out
}

#[test]
fn every_run_of_a_split_ends_as_predicted() {
    let mut known: BTreeMap<String, Geometry> = BTreeMap::new();
    let mut wrong: Vec<String> = Vec::new();
    let mut met = [false; UNEXPLAINED.len()];
    for row in rows() {
        let build = Build::find(Maker::LlamaCpp, &row.build).expect("a known release");
        let spec = row.spec.clone();
        let model = known.entry(spec).or_insert_with(|| geometry(&row.spec));
        let overrides = row
            .option("-ot")
            .map(|text| parse_overrides(&[text.to_owned()], &[]).expect("an override"));
        let all_experts = row.has("-cmoe");
        let on_host = |name: &str| {
            let mut named = overrides.iter().flatten();
            named.any(|o| o.matches(name) == Ok(true)) || all_experts && name.contains("_exps")
        };
        let shares = row.option("-ts").unwrap_or_default().split(',');
        let shares: Vec<f64> = shares.filter_map(|x| x.parse().ok()).collect();
        let predicted = build.predict(
            model,
            &SplitUse {
                devices: Devices {
                    count: row.devices,
                    proportions: &shares,
                },
                backends: &[],
                caches_on_host: row.has("--nkvo"),
                on_host: &on_host,
            },
        );
        let said = predicted
            .first()
            .map_or("right", |p| Outcome::class(p.outcome));
        let known =
            |(spec, options): &(&str, &str)| row.spec.starts_with(spec) && row.options == *options;
        if said != row.seen()
            && let Some(at) = UNEXPLAINED.iter().position(known)
        {
            met[at] = true;
            continue;
        }
        if said != row.seen() {
            let why = predicted
                .first()
                .map(|p| p.why.as_str())
                .unwrap_or_default();
            wrong.push(format!(
                "{} on {} {}: {}, predicted {said} {why}",
                row.spec, row.devices, row.options, row.result
            ));
        }
    }
    assert_eq!(met, [true; UNEXPLAINED.len()], "each is still unexplained");
    assert!(
        wrong.is_empty(),
        "{} rows:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
