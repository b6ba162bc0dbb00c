//! Damaged captures of real graphs.

use serde_json::{Value as Json, json};
use tpc_core::pipeline::compile_capture;
use tpc_core::placement::{Placement, parse_devices};
use tpc_ggml::capture;

use super::{Tally, code_of, first_seed};
use crate::random::Rng;

const KEYS: [&str; 11] = [
    "id",
    "name",
    "op",
    "type",
    "ne",
    "nb",
    "params",
    "src",
    "view",
    "view_offs",
    "flags",
];

/// Rare and unknown ops, which the captures do not have.
const OPS: [&str; 12] = [
    "SET",
    "CPY",
    "DUP",
    "CONT",
    "SOFT_MAX",
    "TOP_K",
    "GATED_DELTA_NET",
    "SSM_SCAN",
    "CONCAT",
    "REPEAT",
    "WIND_BACK",
    "NONE",
];

fn odd_number(rng: &mut Rng, near: i64) -> i64 {
    let some = [
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        64,
        127,
        4096,
        -1,
        i64::from(u32::MAX),
        i64::MAX,
    ];
    match rng.range(0, 5) {
        0 => near.wrapping_add(1),
        1 => near.wrapping_sub(1),
        2 => near.wrapping_mul(2),
        3 => near / 2,
        _ => *rng.pick(&some),
    }
}

fn change_number(of: &mut Json, rng: &mut Rng) {
    match of {
        Json::Array(list) if list.is_empty() => list.push(json!(odd_number(rng, 1))),
        Json::Array(list) => {
            let i = rng.range(0, list.len() as u64 - 1) as usize;
            if rng.one_in(8) {
                list.remove(i);
            } else if rng.one_in(4) {
                let j = rng.range(0, list.len() as u64 - 1) as usize;
                list.swap(i, j);
            } else {
                change_number(&mut list[i], rng);
            }
        }
        Json::Number(n) => {
            let near = n.as_i64().unwrap_or(0);
            *of = json!(odd_number(rng, near));
        }
        other => *other = json!(odd_number(rng, 0)),
    }
}

fn mutate(lines: &mut Vec<Json>, rng: &mut Rng) {
    let at = rng.range(0, lines.len() as u64 - 1) as usize;
    let other = rng.range(0, lines.len() as u64 - 1) as usize;
    match rng.range(0, 15) {
        0 => {
            lines.remove(at);
        }
        1 => {
            let mut copy = lines[at].clone();
            copy["id"] = json!(lines.len() + 1000);
            lines.insert(at + 1, copy);
        }
        2 => lines.swap(at, other),
        3 => {
            lines.truncate(at + 1);
        }
        // Copy the value of a key from another record.
        4..=6 => {
            let key = *rng.pick(&KEYS[2..]);
            lines[at][key] = lines[other][key].clone();
        }
        7 => lines[at]["op"] = json!(rng.pick(&OPS)),
        8 => {
            lines[at]["type"] =
                json!(rng.pick(&["f32", "f16", "i32", "i64", "q8_0", "q4_K", "odd"]));
        }
        9 => {
            lines[at]["view"] = if rng.one_in(2) {
                json!(-1)
            } else {
                lines[other]["id"].clone()
            }
        }
        10 | 11 => {
            // Choose an earlier operand, so that the record still makes sense.
            let earlier = rng.range(0, at as u64);
            let n = lines[at]["src"].as_array().map_or(0, Vec::len);
            if n > 0 {
                let i = rng.range(0, n as u64 - 1) as usize;
                lines[at]["src"][i] = json!(earlier);
            }
        }
        12 => {
            let n = rng.range(1, 9);
            let axis = rng.range(0, 3) as usize;
            lines[at]["ne"][axis] = json!(n);
            let ne: Vec<u64> = (0..4)
                .map(|i| lines[at]["ne"][i].as_u64().unwrap_or(1))
                .collect();
            let size = lines[at]["nb"][0].as_u64().unwrap_or(4);
            let mut nb = vec![size];
            for i in 0..3 {
                nb.push(nb[i].wrapping_mul(ne[i]));
            }
            lines[at]["nb"] = json!(nb);
        }
        _ => {
            let key = *rng.pick(&KEYS);
            change_number(&mut lines[at][key], rng);
        }
    }
}

fn text(lines: &[Json]) -> String {
    lines.iter().map(|l| format!("{l}\n")).collect()
}

fn load(path: &std::path::PathBuf) -> Vec<Json> {
    let text = std::fs::read_to_string(path).expect("a capture");
    let parse = |l: &str| serde_json::from_str(l).expect("JSON");
    text.lines().map(parse).collect()
}

pub(super) fn loaded() -> Vec<Vec<Json>> {
    tpc_tests::captures().iter().map(load).collect()
}

pub(super) fn mutated(captures: &[Vec<Json>], rng: &mut Rng) -> String {
    let mut lines = rng.pick(captures).clone();
    for _ in 0..rng.range(1, 3) {
        if !lines.is_empty() {
            mutate(&mut lines, rng);
        }
    }
    text(&lines)
}

pub(super) fn damaged(runs: u64, tally: &mut Tally) {
    let paths = tpc_tests::captures();
    let captures: Vec<Vec<Json>> = paths.iter().map(load).collect();
    for seed in first_seed()..first_seed() + runs {
        let mut rng = Rng::new(seed);
        let which = rng.range(0, captures.len() as u64 - 1) as usize;
        let mut lines = captures[which].clone();
        for _ in 0..rng.range(1, 3) {
            if !lines.is_empty() {
                mutate(&mut lines, &mut rng);
            }
        }
        let text = text(&lines);
        let devices = rng.range(1, 9);
        let placement = Placement::on(parse_devices(&devices.to_string()).expect("a count"));
        tally.run(
            || format!("seed {seed}: {} on {devices}", paths[which].display()),
            || {
                let captured = match capture::read(&text, "damaged") {
                    Ok(captured) => captured,
                    Err(e) => {
                        assert!(!e.help().is_empty());
                        // The error must describe the capture's fault. TPC0187 would blame the reader.
                        assert_ne!(e.code(), "TPC0187", "{e}");
                        return e.code().id;
                    }
                };
                code_of(compile_capture(&captured, &placement).map(|_| ()))
            },
        );
    }
}
