//! Checks cures of `lint` and `plan`: the cured command must fit without new errors. Tests a sample of models, machines
//! and contexts; all with `TPC_FULL=1`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::support::tpc;

/// Prefixes of model file names; models outside the repository come last.
const MODELS: [&str; 12] = [
    "llama-3.1-8b",
    "gpt-oss-120b",
    "qwen3-30b-a3b",
    "mixtral-8x7b",
    "phi-4",
    "gemma-3-27b",
    "llama-3.1-405b",
    "deepseek-v3.1-q4_k_m",
    "deepseek-v4-flash",
    "glm-4.5-air-106b-a12b-iq4_xs.header",
    "qwen3.5-122b-a10b-ud",
    "qwen3.6-27b-mtp-q4_k_m",
];

const MACHINES: [&str; 10] = [
    "3070",
    "2x3090",
    "3090,4090",
    "2x5060-Ti-16G",
    "3090",
    "4x3090",
    "8x3090",
    "16x3090",
    "2x5090",
    "8xH100-SXM",
];

const CONTEXTS: [u64; 3] = [65_536, 4096, 131_072];

fn header(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [
        root.join("tests/data/headers"),
        root.join("../shared/models"),
        root.join("../shared/reports"),
    ];
    let files = folders.iter().filter_map(|f| f.read_dir().ok()).flatten();
    let mut found: Vec<PathBuf> = files
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| {
            p.file_name()
                .is_some_and(|f| f.to_string_lossy().starts_with(name))
        })
        .collect();
    found.sort();
    found.into_iter().next()
}

fn split(line: &str) -> Vec<String> {
    let (mut out, mut word, mut in_quotes) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => in_quotes = !in_quotes,
            ' ' if !in_quotes => out.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            c => word.push(c),
        }
    }
    out.extend((!word.is_empty()).then_some(word));
    out
}

fn is_option(word: &str) -> bool {
    word.starts_with('-') && !word[1..].starts_with(|c: char| c.is_ascii_digit())
}

fn pasted(line: &[String], cure: &[String]) -> Vec<String> {
    let names: BTreeSet<&String> = cure.iter().filter(|w| is_option(w)).collect();
    let mut out: Vec<String> = Vec::new();
    let mut is_replaced = false;
    for word in line {
        if is_option(word) {
            is_replaced = names.contains(word);
        }
        if !is_replaced {
            out.push(word.clone());
        }
    }
    out.extend_from_slice(cure);
    out
}

fn told(help: &str) -> Vec<Vec<String>> {
    let cure = |line: &str| {
        let line = match line.strip_prefix("this fits") {
            Some(rest) => rest.split_once(": ")?.1,
            None => line.strip_prefix("  ")?,
        };
        let at = line.rfind(" t/s, prompts")?;
        let (options, _) = line[..at].rsplit_once(" (")?;
        options.starts_with('-').then(|| split(options))
    };
    help.lines().filter_map(cure).collect()
}

fn findings<'j>(report: &'j Json, key: &str) -> &'j [Json] {
    report[key].as_array().map_or(&[], Vec::as_slice)
}

fn errors(report: &Json, key: &str) -> BTreeSet<String> {
    let all = findings(report, key).iter();
    let errors = all.filter(|f| f["severity"] == "error");
    errors
        .filter_map(|f| Some(f["code"].as_str()?.to_owned()))
        .collect()
}

fn does_not_fit(report: &Json, key: &str) -> bool {
    findings(report, key).iter().any(|f| f["code"] == "TPC0300")
}

fn report(words: &[String]) -> (Json, Duration) {
    let start = Instant::now();
    let ran = tpc(words);
    let report = serde_json::from_str(&ran.stdout);
    (
        report.unwrap_or_else(|_| panic!("{}: {}", words.join(" "), ran.stderr)),
        start.elapsed(),
    )
}

fn lint(machine: &str, line: &[String]) -> (Json, Duration) {
    let mut words: Vec<String> = ["lint", "--devices", machine, "--format", "json", "--"]
        .map(str::to_owned)
        .into();
    words.extend_from_slice(line);
    report(&words)
}

fn plan(line: &[String]) -> (Json, Duration) {
    let mut words: Vec<String> = ["plan", "--format", "json"].map(str::to_owned).into();
    words.extend_from_slice(line);
    report(&words)
}

#[derive(Default)]
struct Tally {
    cures: usize,
    unfit: usize,
    longest: Duration,
    failures: Vec<String>,
}

impl Tally {
    fn fail(&mut self, line: &[String], why: &str) {
        self.failures.push(format!("{}: {why}", line.join(" ")));
    }

    fn lint(&mut self, machine: &str, line: &[String]) {
        let (said, time) = lint(machine, line);
        self.longest = self.longest.max(time);
        if !does_not_fit(&said, "findings") {
            return;
        }
        self.unfit += 1;
        let mut before = errors(&said, "findings");
        before.remove("TPC0300");
        let help = findings(&said, "findings").iter();
        let help: Vec<&str> = help
            .filter(|f| f["code"] == "TPC0300")
            .filter_map(|f| f["help"].as_str())
            .collect();
        for cure in help.iter().flat_map(|h| told(h)) {
            self.cures += 1;
            let line = pasted(line, &cure);
            let (again, _) = lint(machine, &line);
            let new: Vec<String> = (&errors(&again, "findings") - &before)
                .into_iter()
                .collect();
            if !new.is_empty() || does_not_fit(&again, "findings") {
                self.fail(&line, &format!("lint: {new:?}"));
                continue;
            }
            let same = again["equivalent"].as_str().map(split).unwrap_or_default();
            let (planned, _) = plan(&same[2..]);
            if does_not_fit(&planned, "diagnostics") {
                self.fail(&line, "plan: does not fit");
            }
        }
    }

    fn plan(&mut self, line: &[String]) {
        let (said, time) = plan(line);
        self.longest = self.longest.max(time);
        if !does_not_fit(&said, "diagnostics") {
            return;
        }
        self.unfit += 1;
        for advice in findings(&said, "advice") {
            self.cures += 1;
            let cure = split(advice["options"].as_str().unwrap_or_default());
            let line = pasted(line, &cure);
            let (again, _) = plan(&line);
            let new = errors(&again, "diagnostics");
            if !new.is_empty() || does_not_fit(&again, "diagnostics") {
                self.fail(&line, &format!("plan: {new:?}"));
            }
        }
    }
}

fn words(line: &str, model: &Path) -> Vec<String> {
    let model = model.display().to_string();
    line.split_whitespace()
        .map(|w| {
            if w == "MODEL" {
                model.clone()
            } else {
                w.to_owned()
            }
        })
        .collect()
}

#[test]
fn every_cure_fits_and_draws_no_error() {
    let all = std::env::var_os("TPC_FULL").is_some_and(|v| v == "1");
    let (models, machines, contexts) = match all {
        true => (MODELS.len(), MACHINES.len(), CONTEXTS.len()),
        false => (3, 3, 1),
    };
    let mut tally = Tally::default();
    for name in &MODELS[..models] {
        let Some(model) = header(name) else { continue };
        for machine in &MACHINES[..machines] {
            for context in &CONTEXTS[..contexts] {
                let line = format!("llama-server -m MODEL -c {context} -ngl 99 -fit off");
                tally.lint(machine, &words(&line, &model));
                if all {
                    let line = format!("MODEL --devices {machine} -c {context}");
                    tally.plan(&words(&line, &model));
                }
            }
        }
    }
    println!(
        "{} commands do not fit, {} cures, {} fail, the longest search takes {:?}",
        tally.unfit,
        tally.cures,
        tally.failures.len(),
        tally.longest
    );
    assert!(tally.failures.is_empty(), "{:#?}", tally.failures);
    assert!(tally.cures > tally.unfit / 2, "{} cures", tally.cures);
}

#[test]
fn shares_come_first() {
    let model = header("qwen3-30b-a3b").unwrap();
    // With the first layers' experts on the host, the second half of the layers has nearly all bytes.
    let line = "llama-server -m MODEL -c 8192 -ngl 99 -fit off -ncmoe 20";
    let (said, _) = lint("2x3070", &words(line, &model));
    let help = findings(&said, "findings")
        .iter()
        .find(|f| f["code"] == "TPC0300");
    let cures = told(help.unwrap()["help"].as_str().unwrap());
    assert_eq!(cures[0][0], "-ts", "{cures:?}");
    assert_eq!(cures[0].len(), 2, "{cures:?}");
}

#[test]
fn patterns_of_the_line_are_edited() {
    let model = header("qwen3-30b-a3b").unwrap();
    let line = r"llama-server -m MODEL -c 8192 -ngl 99 -fit off -ts 1,1 -ot blk\.([0-9]|1[0-9])\.ffn_.*_exps=CUDA0 \
                 -ot blk\.(40|41|42|43|44|45|46|47)\.ffn_.*_exps=CUDA1 -ot blk\.[0-9]+\.ffn_.*_exps=CPU";
    let line: Vec<String> = words(line, &model)
        .into_iter()
        .filter(|w| w != "\\")
        .collect();
    let (said, _) = lint("2x3070", &line);
    let help = findings(&said, "findings")
        .iter()
        .find(|f| f["code"] == "TPC0300");
    let cures = told(help.unwrap()["help"].as_str().unwrap());
    let first = cures[0].join(" ");
    assert!(first.contains(r"-ot blk\.([0-9]"), "{cures:?}");
    assert!(first.contains("=CUDA0 -ot"), "{cures:?}");
    assert!(!first.contains("-c "), "{cures:?}");
    let (again, _) = lint("2x3070", &pasted(&line, &cures[0]));
    assert!(!does_not_fit(&again, "findings"), "{first}");
}

#[test]
fn lines_are_pasted_as_people_do() {
    let all = |text: &str| split(text);
    let line = all("llama-server -m a.gguf -ot 'a=CPU' -ot b=CPU -c 4096 --jinja");
    let cure = all("-ot 'c d=CPU' -c 512");
    assert_eq!(
        pasted(&line, &cure),
        [
            "llama-server",
            "-m",
            "a.gguf",
            "--jinja",
            "-ot",
            "c d=CPU",
            "-c",
            "512"
        ]
    );
    let help = "each of these fits; first …:\n  -ts 3,1 (18.6 t/s, prompts 3 t/s at depth 0)\n  -ngl 4 (2 t/s, prompts 1 t/s \
                at depth 0; 2 of 4 layers on the host)\n3 such devices suffice (-sm layer, 4.0 t/s)";
    assert_eq!(told(help), [vec!["-ts", "3,1"], vec!["-ngl", "4"]]);
    let help = "this fits (the best of 3 plans tried): -c 512 (1 t/s, prompts 2 t/s at depth 0)";
    assert_eq!(told(help), [vec!["-c", "512"]]);
}
