//! `dump --format dot`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::support::{SMALL, Scratch, path, refuses, tpc, words};

fn unquoted(dot: &str) -> String {
    let (mut out, mut inside, mut escaped) = (String::new(), false, false);
    for c in dot.chars() {
        match c {
            '"' if !escaped => {
                inside = !inside;
                out.push(c);
            }
            c if !inside => out.push(c),
            _ => {}
        }
        escaped = inside && c == '\\' && !escaped;
    }
    assert!(!inside, "a quote is not closed");
    out
}

/// Returns nodes and edges. Checks that braces close, statements end, and edges connect existing nodes.
#[track_caller]
fn checked(dot: &str) -> (BTreeSet<String>, Vec<(String, String)>) {
    let text = unquoted(dot);
    assert_eq!(text.matches('{').count(), text.matches('}').count());
    assert_eq!(text.matches('[').count(), text.matches(']').count());
    let (mut nodes, mut edges) = (BTreeSet::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        assert!(line.ends_with(['{', '}', ';']), "{line}");
        let head = line.split([' ', '[']).next().unwrap();
        if let Some((from, to)) = line.split_once(" -> ") {
            let to = to.split([' ', ';']).next().unwrap();
            edges.push((from.to_owned(), to.to_owned()));
        } else if head.starts_with("inst") || head.starts_with("out") {
            assert!(nodes.insert(head.to_owned()), "{head} twice");
        }
    }
    for (from, to) in &edges {
        assert!(nodes.contains(from) && nodes.contains(to), "{from} -> {to}");
    }
    (nodes, edges)
}

#[test]
fn every_stage_that_is_a_graph_is_drawn() {
    let model = path(SMALL);
    for stage in ["model", "placed", "sharded", "rewrite", "programs"] {
        let words = [
            "dump",
            &model,
            "--devices",
            "2",
            "-sm",
            "tensor",
            "--stage",
            stage,
            "--format",
            "dot",
        ];
        let ran = tpc(words);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let (nodes, edges) = checked(&ran.stdout);
        assert!(
            nodes.len() > 28 * 20 && edges.len() > nodes.len(),
            "{stage}"
        );
        assert!(ran.stdout.contains("subgraph cluster_l27 {"), "{stage}");
        let collectives = ran.stdout.matches("shape=hexagon").count();
        let divided = ["sharded", "rewrite", "programs"].contains(&stage);
        assert_eq!(collectives, if divided { 57 } else { 0 }, "{stage}");
        let partial = ran.stdout.contains(", partial\"");
        assert_eq!(partial, ["sharded", "rewrite"].contains(&stage));
    }
}

#[test]
fn chosen_layers_are_drawn_with_what_they_read() {
    let model = path(SMALL);
    let draw = |more: &[&str]| {
        let mut words = vec!["dump", &model, "--devices", "2", "-sm", "tensor"];
        words.extend(["--stage", "programs"]);
        words.extend(more);
        tpc(words)
    };
    let ran = draw(&["--format", "dot", "--layers", "3-4"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let (nodes, _) = checked(&ran.stdout);
    assert!(nodes.len() < 400, "{}", nodes.len());
    let clusters: Vec<&str> = ran
        .stdout
        .lines()
        .filter_map(|l| l.trim().strip_prefix("subgraph "))
        .collect();
    let expected = [
        "cluster_l3 {",
        "cluster_l3_dev0 {",
        "cluster_l3_dev1 {",
        "cluster_l4 {",
        "cluster_l4_dev0 {",
        "cluster_l4_dev1 {",
    ];
    let found: BTreeSet<&str> = clusters.into_iter().collect();
    assert_eq!(found, expected.into_iter().collect());
    assert!(ran.stdout.contains("dashed"), "what comes from layer 2");
    for (more, told) in [
        (&["--format", "dot", "--layers", "28"][..], "0 to 27"),
        (&["--layers", "2"], "--format dot"),
        (
            &["--format", "dot", "--layers", "4-3"],
            "a range such as 3-5",
        ),
        (&["--format", "dot", "--layers", "x"], "a range such as 3-5"),
    ] {
        let ran = draw(more);
        refuses(&ran, 2, "TPC0400");
        assert!(words(&ran.stderr).contains(told), "{}", ran.stderr);
    }
    let factors = tpc(["dump", &model, "--stage", "factors", "--format", "dot"]);
    refuses(&factors, 2, "TPC0400");
}

#[test]
fn hostile_names_stay_in_their_labels() {
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/graphs/llama-dense.jsonl");
    let text = fs::read_to_string(capture).unwrap();
    let scratch = Scratch::new();
    let draw = |name: &str| {
        let name = serde_json::to_string(name).unwrap();
        let text = text.replace("\"blk.0.attn_q.weight\"", &name);
        let file = scratch.file("capture.jsonl", text);
        let file = file.to_str().unwrap();
        let ran = tpc([
            "dump", "--graph", file, "--stage", "placed", "--format", "dot",
        ]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        ran.stdout
    };
    let tame = checked(&draw("q"));
    for name in [
        "\"]; x -> y [label=\"",
        "ends in \\",
        "\\\"",
        "\n}\n",
        "&lt;\\N\u{202e}",
    ] {
        assert_eq!(checked(&draw(name)), tame, "{name:?}");
    }
}
