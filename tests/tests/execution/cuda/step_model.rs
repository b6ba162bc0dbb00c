//! The model of a step against measurements on cards, and its predictions for other cards.
//!
//! `measured.json` has the launches and instruction counts of the measured kernels, so later kernels do not change this
//! comparison. `TPC_FREEZE=1` writes the file from the present kernels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tpc_core::pipeline::compile;
use tpc_core::placement::SplitMode;
use tpc_core::report::StepReport;
use tpc_cuda::executor::{PlannedKernel, PlannedNode};
use tpc_cuda::step_model::{
    Card, CardLink, DECODE_ERROR, KERNEL_ERROR, KernelCounts, KernelTable, Launching, predict,
    predict_serial, table,
};
use tpc_engine::step::{cards_of, planned_steps, step_report};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_tests::headers;

use crate::support::{Written, name};

/// A measured run: the launches of a token at a depth, and tokens per second.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    model: String,
    card: String,
    depth: u64,
    measured: f64,
    /// The number of launches of each kernel; `None` for ops on the host.
    launches: Vec<(usize, Option<PlannedKernel>)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    runs: Vec<Run>,
    counts: Vec<KernelCounts>,
}

/// Models, cards, depths and tokens per second of `docs/src/card-report.md`. Norms of the first run did not prefetch; norms
/// of the other runs did.
const RUNS: [(&str, &str, u64, f64); 7] = [
    ("llama-3.1-8b-instruct", "h200", 0, 244.0),
    ("llama-3.1-8b-instruct", "h200", 8192, 183.0),
    ("llama-3.1-8b-instruct", "h200", 32768, 107.0),
    ("llama-3.1-8b-instruct", "h100", 0, 224.0),
    ("llama-8b:type=q8_0,header=1", "h200", 0, 217.0),
    ("gemma-3-27b-it", "h200", 0, 69.0),
    ("qwen3-30b-a3b", "h200", 0, 180.0),
];

/// Kernels of a token of the 8B model on an H200, one after another, in microseconds each. The norm prefetched in 14.2
/// µs; without prefetch, a token took 1.9 µs less per norm.
const KERNELS: [(&str, &str, f64); 8] = [
    ("glu_columns", "Q4K", 37.4),
    ("norm_mul", "", 12.3),
    ("plane_columns_add", "Q4K", 14.0),
    ("flash_decode", "", 20.7),
    ("plane_columns_add", "Q6K", 23.4),
    ("heads", "", 7.7),
    ("grouped_columns", "", 13.7),
    ("plane_columns", "Q6K", 128.0),
];

fn options(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn with_model<T>(model: &str, of: impl Fn(&GgufFile) -> T) -> T {
    if model.contains(':') {
        let written = Written::new(model);
        return of(&GgufFile::open(&written.0).expect("a header"));
    }
    let path = headers().into_iter().find(|p| name(p).starts_with(model));
    let path = path.unwrap_or_else(|| panic!("no header of {model}"));
    of(&GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}")))
}

fn freeze() -> Measured {
    let mut counts: BTreeMap<String, KernelCounts> = BTreeMap::new();
    let mut runs = Vec::new();
    for (model, card, depth, measured) in RUNS {
        // tg64 reads 32 cells more on average.
        let (cells, mean) = (depth + 128, depth + 32);
        let given = options(&format!("--devices {card} -c {cells} --depth {mean}"));
        let placement = tpc::placement(&given, DType::F16, SplitMode::Auto).expect("options");
        let nodes = with_model(model, |file| {
            let compiled =
                compile(file, &placement).unwrap_or_else(|d| panic!("{model}: {}", d[0]));
            let cards = cards_of(&placement).expect("cards");
            let steps = planned_steps(&compiled, &placement, &cards);
            steps.unwrap_or_else(|e| panic!("{model}: {e}")).token.0
        });
        let mut launches: Vec<(usize, Option<PlannedKernel>)> = Vec::new();
        for node in nodes {
            let kernel = node.kernel.map(|(_, kernel)| kernel);
            if let Some(kernel) = &kernel {
                let found = table().of("sm_90a", &kernel.name).expect("counts");
                counts.insert(kernel.name.clone(), found);
            }
            match launches.iter_mut().find(|(_, known)| *known == kernel) {
                Some((n, _)) => *n += 1,
                None => launches.push((1, kernel)),
            }
        }
        runs.push(Run {
            model: model.to_owned(),
            card: card.to_owned(),
            depth,
            measured,
            launches,
        });
    }
    Measured {
        runs,
        counts: counts.into_values().collect(),
    }
}

const MEASURED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/execution/cuda/measured.json"
);

fn measured() -> Measured {
    if std::env::var("TPC_FREEZE").is_ok_and(|v| v == "1") {
        let text = serde_json::to_string(&freeze()).expect("JSON");
        std::fs::write(MEASURED, text).expect("the file is written");
    }
    let text = std::fs::read_to_string(MEASURED).expect("the measured launches");
    serde_json::from_str(&text).expect("JSON")
}

fn card(name: &str) -> Card {
    let given = options(&format!("--devices {name}"));
    let placement = tpc::placement(&given, DType::F16, SplitMode::Auto).expect("options");
    cards_of(&placement).expect("a card").swap_remove(0)
}

fn nodes(run: &Run) -> Vec<PlannedNode> {
    let all = run.launches.iter();
    let all = all.flat_map(|(n, kernel)| std::iter::repeat_n(kernel, *n));
    let node = |(i, kernel): (usize, &Option<PlannedKernel>)| PlannedNode {
        kernel: kernel.clone().map(|k| (0, k)),
        after: i.checked_sub(1).into_iter().collect(),
    };
    all.enumerate().map(node).collect()
}

fn measured_table(counts: Vec<KernelCounts>) -> KernelTable {
    let mut table = KernelTable::default();
    counts.into_iter().for_each(|row| table.insert(row));
    table
}

#[test]
fn predicted_speeds_match_measurements_within_the_stated_error() {
    let Measured { runs, counts } = measured();
    let table = measured_table(counts);
    let no_link = |_, _| -> CardLink { unreachable!("one device") };
    let mut failed = Vec::new();
    for run in &runs {
        let nodes = nodes(run);
        let launching = (Launching::Programmatic, &table);
        let step = predict(&nodes, &[card(&run.card)], &no_link, launching).expect("counts");
        let tps = 1e6 / step.us;
        let error = tps / run.measured - 1.0;
        let what = format!(
            "{} on {} at depth {}: predicted {tps:.0} t/s, measured {:.0} ({:+.0} %)",
            run.model,
            run.card,
            run.depth,
            run.measured,
            error * 100.0
        );
        println!("{what}");
        if error.abs() > DECODE_ERROR {
            failed.push(what);
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn predicted_kernels_match_measurements_within_the_stated_error() {
    let Measured { runs, counts } = measured();
    let table = measured_table(counts);
    let all = predict_serial(&nodes(&runs[0]), &card("h200"), &table).expect("counts");
    let mut failed = Vec::new();
    for (template, weights, us) in KERNELS {
        let is_template = |name: &str| name.split('<').next() == Some(template);
        let of: Vec<_> = (all.iter())
            .filter(|k| is_template(&k.kernel) && k.kernel.contains(weights))
            .collect();
        let launches: usize = of.iter().map(|k| k.launches).sum();
        let sum: f64 = of.iter().map(|k| k.us).sum();
        let each = sum / launches.max(1) as f64;
        let error = each / us - 1.0;
        let what = format!(
            "{template} {weights}: predicted {each:.1} µs, measured {us} ({:+.0} %), {launches} launches",
            error * 100.0
        );
        println!("{what}");
        if error.abs() > KERNEL_ERROR {
            failed.push(what);
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn report(model: &str, given: &str) -> StepReport {
    let placement = tpc::placement(&options(given), DType::F16, SplitMode::Auto).expect("options");
    with_model(model, |file| {
        let compiled = compile(file, &placement).unwrap_or_else(|d| panic!("{model}: {}", d[0]));
        step_report(&compiled, &placement).expect("a prediction")
    })
}

/// Returns the bytes of weights that a token reads, over the bandwidth that it would take all of the time.
fn share_of_bandwidth(report: &StepReport, bandwidth: f64) -> f64 {
    let bytes: u64 = report.token.kernels.iter().map(|k| k.weight_bytes).sum();
    bytes as f64 / bandwidth / (report.token.us / 1e6)
}

/// The least figures of predictions, as the book has them. Better kernels give larger figures.
const LEAST: [(&str, f64); 11] = [
    ("8B on h100: % of the bandwidth", 44.5),
    ("8B on h100: t/s", 325.0),
    ("8B on h100: prompt t/s", 14700.0),
    ("8B on 4090: % of the bandwidth", 68.5),
    ("8B on 4090: t/s", 150.0),
    ("8B on 4090: prompt t/s", 9050.0),
    ("30B-A3B on 4090: prompt t/s", 9800.0),
    ("70B on 2x h100: a card's bandwidth time over time", 1.02),
    ("70B on 2x l40s: a card's bandwidth time over time", 1.46),
    ("70B on 2x 4090: a card's bandwidth time over time", 1.31),
    ("405B on 8x h100: t/s", 46.0),
];

/// Checks predictions for cards that were not measured.
#[test]
fn predictions_for_other_cards_are_no_worse_than_the_book_says() {
    let eight = "llama-3.1-8b-instruct";
    let mut figures = Vec::new();
    for (name, bandwidth) in [("h100", 3.35e12), ("4090", 1.008e12)] {
        let r = report(eight, &format!("--devices {name} -c 4096"));
        let share = 100.0 * share_of_bandwidth(&r, bandwidth);
        figures.push((format!("8B on {name}: % of the bandwidth"), share));
        figures.push((format!("8B on {name}: t/s"), r.token.tps));
        figures.push((format!("8B on {name}: prompt t/s"), r.prompt.tps));
    }
    let experts = report("qwen3-30b-a3b", "--devices 4090 -c 4096");
    figures.push(("30B-A3B on 4090: prompt t/s".to_owned(), experts.prompt.tps));
    // Links: NVLink; PCI Express between cards; PCI Express through the host.
    for (name, bandwidth) in [("h100", 3.35e12), ("l40s", 0.864e12), ("4090", 1.008e12)] {
        let given = format!("--devices 2x{name} -sm tensor -c 4096");
        let r = report("llama-3.1-70b-instruct", &given);
        // Both cards read about the same bytes.
        let bytes: u64 = r.token.kernels.iter().map(|k| 2 * k.weight_bytes).sum();
        let one = bytes as f64 / bandwidth * 1e6;
        let what = format!("70B on 2x {name}: a card's bandwidth time over time");
        figures.push((what, one / r.token.us));
        println!(
            "70B on 2x {name}: {:.2} ms, {:.2} ms between cards",
            r.token.us / 1e3,
            r.token.edges_us / 1e3
        );
    }
    let large = report("llama-3.1-405b", "--devices 8xh100 -sm tensor -c 4096");
    figures.push(("405B on 8x h100: t/s".to_owned(), large.token.tps));
    let mut worse = Vec::new();
    for (what, figure) in &figures {
        println!("{what}: {figure:.2}");
        let least = LEAST.iter().find(|(known, _)| known == what);
        let least = least
            .unwrap_or_else(|| panic!("{what} is not in the table"))
            .1;
        if !figure.is_finite() || *figure < least {
            worse.push(format!("{what}: {figure:.2}, the book has {least}"));
        }
    }
    assert_eq!(figures.len(), LEAST.len());
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}
