//! Lints of captured graphs, on a small Llama's capture with one change and on hand-written captures.

use crate::support::verified;
use serde_json::{Value as Json, json};
use tpc_diag::Diagnostic;
use tpc_ggml::capture::{CapturedGraph, read};
use tpc_ir::text;
use tpc_lint::{Capture, lint_graph};
use tpc_tests::data;

use super::Case;

fn llama() -> Vec<Json> {
    let path = data().join("graphs/llama-dense.jsonl");
    let text = std::fs::read_to_string(path).expect("the capture is there");
    text.lines()
        .map(|l| serde_json::from_str(l).expect("a record"))
        .collect()
}

fn findings(records: &[Json]) -> Vec<Diagnostic> {
    let lines: Vec<String> = records.iter().map(Json::to_string).collect();
    let captured = read(&lines.join("\n"), "port").unwrap_or_else(|e| panic!("{e}"));
    of_captured(&captured)
}

fn of_captured(captured: &CapturedGraph) -> Vec<Diagnostic> {
    let printed = text::print(&captured.graph);
    lint_graph(&Capture {
        records: &captured.records,
        captured,
        printed: &printed,
    })
}

fn at(records: &[Json], op: &str, name: &str) -> usize {
    let found = records
        .iter()
        .position(|r| r["op"] == op && r["name"] == name);
    found.unwrap_or_else(|| panic!("no {op} of {name}"))
}

fn packed(ty: &str, ne: [u64; 4]) -> [u64; 4] {
    let size = match ty {
        "f16" => 2,
        "i64" => 8,
        _ => 4,
    };
    [
        size,
        size * ne[0],
        size * ne[0] * ne[1],
        size * ne[0] * ne[1] * ne[2],
    ]
}

pub(super) fn record(id: u64, name: &str, op: &str, ty: &str, ne: [u64; 4], src: &[i64]) -> Json {
    json!({
        "id": id, "name": name, "op": op, "type": ty, "ne": ne, "nb": packed(ty, ne), "params": [], "src": src,
        "view": -1, "view_offs": 0, "flags": if op == "NONE" { 0 } else { 16 },
    })
}

fn bits(x: f32) -> u32 {
    x.to_bits()
}

/// Returns a product of head rows, flattened if `flat`.
fn rotation(flat: bool) -> Vec<Json> {
    let mut x = record(0, "heads", "NONE", "f32", [128, 3, 8, 1], &[]);
    x["flags"] = 1.into();
    let ne = if flat { [64, 48, 1, 1] } else { [64, 2, 3, 8] };
    let mut reshaped = record(2, "rows", "RESHAPE", "f32", ne, &[0]);
    reshaped["view"] = 0.into();
    let matrix = record(1, "rot", "NONE", "f32", [64, 64, 1, 1], &[]);
    vec![
        x,
        matrix,
        reshaped,
        record(3, "rotated", "MUL_MAT", "f32", ne, &[1, 2]),
    ]
}

/// Returns a capture of three attention ops with one head size and these scales.
fn scales(scales: [f32; 3]) -> Vec<Json> {
    let mut out = llama();
    let first = at(&out, "FLASH_ATTN_EXT", "node_24");
    for (i, scale) in scales.into_iter().enumerate() {
        let mut again = out[first].clone();
        again["id"] = (9000 + i).into();
        again["params"][0] = bits(scale).into();
        out.insert(first + 1 + i, again);
    }
    out
}

/// Makes layers of an RMS norm and a product. In layer `odd`, another op replaces the product.
fn layers(odd: Option<u32>) -> CapturedGraph {
    let mut text =
        String::from("tpir 1\ngraph \"layers\"\n\nv0 \"x\": f32[8] @host = input {name = \"x\"}\n");
    let mut last = 0;
    for layer in 0..8 {
        let op = if odd == Some(layer) { "add" } else { "mul" };
        text.push_str(&format!(
            "\nlayer {layer}\nv{} \"norm-{layer}\": f32[8] @host = rms_norm v{last} {{eps = 1e-5}}\nv{} \"out-{layer}\": f32[8] @host = {op} v{}, v{last}\n",
            last + 1,
            last + 2,
            last + 1
        ));
        last += 2;
    }
    text.push_str(&format!("\nlayer none\noutput \"out\" = v{last}\n"));
    let parsed = tpc_ir::text::parse(&text).unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
    CapturedGraph {
        graph: verified(parsed.graph),
        batch: Vec::new(),
        n_layer: 8,
        lines: Vec::new(),
        notes: Vec::new(),
        records: Vec::new(),
        leaves: Vec::new(),
        results: Vec::new(),
    }
}

pub(super) fn cases() -> Vec<Case> {
    let case = |code, edit: fn(&mut Vec<Json>)| {
        let fires = move || {
            let mut records = llama();
            edit(&mut records);
            findings(&records)
        };
        Case::new(code, fires, || findings(&llama()))
    };
    vec![
        case("TPC0640", |r| {
            let mut scale = record(9000, "lost", "SCALE", "f32", [256, 8, 1, 1], &[5]);
            scale["params"] = json!([bits(2.0), 0]);
            r.insert(6, scale);
        }),
        case("TPC0641", |r| {
            let first = at(r, "MUL_MAT", "Qcur-0");
            let mut again = r[first].clone();
            again["id"] = 9000.into();
            r.insert(first + 1, again);
        }),
        case("TPC0642", |r| {
            let first = at(r, "MUL_MAT", "Qcur-0");
            r.insert(
                first + 1,
                record(9000, "copy", "CONT", "f32", [512, 8, 1, 1], &[7]),
            );
        }),
        case("TPC0643", |r| {
            let write = at(r, "SET_ROWS", "cache_k_l0 (view)");
            let cache = record(9000, "cache_x", "NONE", "f16", [256, 512, 1, 1], &[]);
            let mut set = r[write].clone();
            set["id"] = 9001.into();
            set["view"] = 9000.into();
            set["src"][2] = 9000.into();
            r.splice(write..write, [cache, set]);
        }),
        case("TPC0644", |r| {
            let write = at(r, "SET_ROWS", "cache_v_l0 (view)");
            r.remove(write);
        }),
        case("TPC0645", |r| {
            let attention = at(r, "FLASH_ATTN_EXT", "node_24");
            let mut mask = record(9000, "mask", "NONE", "f32", [512, 8, 1, 1], &[]);
            mask["flags"] = 1.into();
            r[attention]["src"][3] = 9000.into();
            r.insert(attention, mask);
        }),
        case("TPC0646", |r| {
            let attention = at(r, "FLASH_ATTN_EXT", "node_24");
            r[attention]["params"][3] = 0.into();
        }),
        case("TPC0647", |r| {
            let norm = at(r, "RMS_NORM", "norm-0");
            r[norm]["params"] = json!([]);
        }),
        case("TPC0648", |r| {
            for (layer, eps) in [(0, 1e-5), (1, 1e-6)] {
                let norm = at(r, "RMS_NORM", &format!("norm-{layer}"));
                r[norm]["name"] = format!("attn_norm_in-{layer}").into();
                r[norm]["params"] = json!([bits(eps)]);
            }
        }),
        Case::new(
            "TPC0649",
            || of_captured(&layers(Some(4))),
            || of_captured(&layers(None)),
        ),
        Case::new(
            "TPC0649",
            || of_captured(&layers(Some(1))),
            || of_captured(&layers(Some(0))),
        ),
        Case::new(
            "TPC0650",
            || findings(&rotation(true)),
            || findings(&rotation(false)),
        ),
        case("TPC0651", |r| {
            let first = at(r, "ADD", "ffn_inp-0");
            r.insert(
                first,
                record(9000, "half", "ADD", "f16", [256, 8, 1, 1], &[45, 2]),
            );
        }),
        case("TPC0652", |r| {
            r.insert(
                0,
                record(9000, "blk.0.lost.bias", "NONE", "f32", [256, 1, 1, 1], &[]),
            );
        }),
        case("TPC0653", |r| {
            let rope = at(r, "ROPE", "Qcur-0");
            r[rope]["params"][1] = 130.into();
        }),
        case("TPC0654", |r| {
            let attention = at(r, "FLASH_ATTN_EXT", "node_24");
            r[attention]["src"] = json!([34, 36, 38]);
        }),
        case("TPC0655", |r| {
            let first = at(r, "MUL_MAT", "Qcur-0");
            r.insert(
                first,
                record(9000, "copy", "CONT", "f32", [256, 512, 1, 1], &[6]),
            );
            r[first + 1]["src"][0] = 9000.into();
        }),
        case("TPC0656", |r| {
            let mut scale = record(9000, "one", "SCALE", "f32", [256, 8, 1, 1], &[5]);
            scale["params"] = json!([bits(1.0), 0]);
            r.insert(6, scale);
        }),
        Case::new(
            "TPC0657",
            || findings(&scales([0.088_388_346, 0.088_388_346, 1.0])),
            || findings(&scales([0.088_388_346; 3])),
        ),
        case("TPC0658", |r| {
            let attention = at(r, "FLASH_ATTN_EXT", "node_24");
            let q = record(9000, "q", "NONE", "f32", [128, 8, 3, 1], &[]);
            r[attention]["src"][0] = 9000.into();
            r[attention]["ne"] = json!([128, 3, 8, 1]);
            r[attention]["nb"] = json!(packed("f32", [128, 3, 8, 1]));
            // The following records expect another number of heads.
            r.truncate(attention + 1);
            r.insert(attention, q);
        }),
    ]
}

#[test]
fn the_cure_of_a_flattened_rotation_is_shown_as_ir() {
    let found = findings(&rotation(true));
    let d = found
        .iter()
        .find(|d| d.code == "TPC0650")
        .expect("it fires");
    let help = d.help.as_ref().expect("it has a cure");
    assert!(
        help.contains("reshape v") && help.contains("{dims = [64, 2, 3, 8]}"),
        "{help}"
    );
    let excerpt = d.excerpt.as_ref().expect("it shows the graph");
    let (range, label) = &excerpt.labels()[0];
    assert!(
        excerpt.text()[range.clone()].contains("mul_mat"),
        "{}",
        excerpt.text()
    );
    assert!(label.contains("merged"), "{label}");
}
