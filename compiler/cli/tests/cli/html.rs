//! `plan --html`: the page has the JSON report's content and loads no other files. `tests/browser/` checks its
//! appearance and behaviour.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::support::{Ran, Scratch, path, refuses, tpc};

fn page(scratch: &Scratch, words: &[&str]) -> (String, Ran) {
    let file = scratch.path("plan.html");
    let mut all = vec!["plan"];
    all.extend(words);
    all.extend(["--html", file.to_str().unwrap()]);
    let ran = tpc(all);
    (fs::read_to_string(file).unwrap_or_default(), ran)
}

const DATA: &str = "<script type=\"application/json\" id=\"plan\">";

fn data(page: &str) -> Json {
    let (_, rest) = page.split_once(DATA).expect("the data");
    let (json, _) = rest.split_once("</script>").expect("their end");
    serde_json::from_str(json).unwrap()
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn number(json: &Json) -> usize {
    usize::try_from(json.as_u64().unwrap()).unwrap()
}

fn name_in(name: &Json, layer: &Json) -> String {
    match name.as_array() {
        Some(parts) => format!(
            "{}{layer}{}",
            parts[0].as_str().unwrap(),
            parts[1].as_str().unwrap()
        ),
        None => name.as_str().unwrap().to_owned(),
    }
}

fn unpacked(runs: &Json) -> Vec<[u64; 2]> {
    let one = |run: &Json| {
        let n: Vec<u64> = list(run).iter().map(|n| n.as_u64().unwrap()).collect();
        let (stride, count) = (
            n.get(2).copied().unwrap_or(0),
            n.get(3).copied().unwrap_or(1),
        );
        (0..count)
            .map(|i| [n[0] + i * stride, n[1]])
            .collect::<Vec<_>>()
    };
    list(runs).iter().flat_map(one).collect()
}

/// Converts the page's tensors to the JSON form: lists of non-empty ranges.
fn tensors_of_page(data: &Json) -> Vec<Json> {
    let mut out = Vec::new();
    for layer in list(&data["layers"]) {
        for t in list(&data["kinds"][number(&layer["k"])]) {
            let ranges = t["r"].as_u64().map_or(Vec::new(), |r| {
                let all = &data["ranges"][usize::try_from(r).unwrap()];
                list(all).iter().map(unpacked).collect()
            });
            out.push(json!([
                name_in(&t["n"], &layer["l"]),
                t["t"],
                t["d"],
                data["places"][number(&t["p"])]["name"],
                t.get("a").cloned().unwrap_or(Json::Null),
                ranges,
                layer["l"],
                t["s"] == true,
            ]));
        }
    }
    out.sort_by_key(|t| t[0].to_string() + &t[3].to_string());
    out
}

fn tensors_of_report(report: &Json) -> Vec<Json> {
    let one = |t: &Json| {
        let device = |r: &Json| match r[0] {
            Json::Array(_) => unpacked(r),
            _ => vec![[r[0].as_u64().unwrap(), r[1].as_u64().unwrap()]],
        };
        let ranges: Vec<Vec<[u64; 2]>> = list(&t["sharding"]["ranges"])
            .iter()
            .map(|r| device(r).into_iter().filter(|r| r[1] > 0).collect())
            .collect();
        json!([
            t["name"],
            t["dtype"],
            t["ne"],
            t["place"],
            t["sharding"]["axis"],
            ranges,
            t["layer"],
            t["kind"] == "state",
        ])
    };
    let mut out: Vec<Json> = list(&report["tensors"]).iter().map(one).collect();
    out.sort_by_key(|t| t[0].to_string() + &t[3].to_string());
    out
}

/// Returns the largest number of any device.
fn largest(each: &Json) -> f64 {
    let all = list(each).iter().filter_map(Json::as_f64);
    each.as_f64().unwrap_or_else(|| all.fold(0.0, f64::max))
}

/// Returns a batch's numbers of collectives and copies, their bytes, and the total time of its steps.
fn batch(data: &Json, i: usize) -> (u64, u64, u64, f64) {
    let (mut collectives, mut copies, mut bytes, mut us) = (0, 0, 0, 0.0);
    for stretch in list(&data["stretches"]) {
        for step in list(&data["flows"][number(&stretch["f"])]) {
            us += largest(&step["us"][i]);
            let Some(each) = step.get("b").map(|b| &b[i]) else {
                continue;
            };
            let links = step["c"].as_u64().unwrap_or(1);
            let (n, sum) = match each.as_u64() {
                Some(b) => (links, b * links),
                None => (
                    list(each).len() as u64,
                    list(each).iter().map(|b| b.as_u64().unwrap()).sum(),
                ),
            };
            *(if step.get("f").is_some() {
                &mut copies
            } else {
                &mut collectives
            }) += n;
            bytes += sum;
        }
    }
    (collectives, copies, bytes, us)
}

#[test]
fn the_page_tells_what_the_json_tells() {
    let scratch = Scratch::new();
    for (header, options) in [
        ("llama-3.1-405b", "--devices 8 -sm tensor"),
        ("phi-4", "--devices 3 -sm tensor -c 8192 -ts 3,2,1"),
        ("qwen3-30b", "--devices 8 -sm tensor -c 4096"),
        ("qwen3-30b", "--devices 2 -sm tensor --cpu-moe -c 4096"),
        ("llama-3.1-8b", "--devices 2 -sm tensor -nkvo -c 4096"),
        ("llama-3.1-70b", "--devices 4 -sm layer -c 4096"),
        ("gpt-oss", "--devices 5 -sm tensor -c 8192"),
        ("qwen3-0.6b", "--devices 1"),
    ] {
        let model = path(header);
        let mut words = vec![model.as_str(), "--format", "json"];
        words.extend(options.split(' '));
        let (page, ran) = page(&scratch, &words);
        assert_eq!(ran.status, 0, "{header}: {}", ran.stderr);
        let report: Json = serde_json::from_str(&ran.stdout).unwrap();
        let data = data(&page);
        let (found, told) = (tensors_of_page(&data), tensors_of_report(&report));
        assert_eq!(found.len(), told.len(), "{header} {options}");
        for (found, told) in found.iter().zip(&told) {
            assert_eq!(found, told, "{header} {options}");
        }
        for (key, value) in report.as_object().unwrap() {
            if key != "tensors" {
                assert_eq!(&data["report"][key], value, "{header} {options}");
            }
        }
        for (i, name) in ["decode", "prefill"].iter().enumerate() {
            let (collectives, copies, bytes, us) = batch(&data, i);
            let counted = &report["collectives"][name];
            assert_eq!(collectives, counted["all_reduce"], "{header} {options}");
            assert_eq!(copies, counted["copies"], "{header} {options}");
            assert_eq!(bytes, counted["bytes"], "{header} {options}");
            // Steps wait for the slowest device, so their sum may exceed the estimate.
            let estimate = report["estimate"][format!("{name}_us")].as_f64().unwrap();
            assert!(
                us > 0.99 * estimate && us < 1.25 * estimate,
                "{header} {options} {name}: {us} and {estimate}"
            );
        }
    }
}

#[test]
fn bytes_of_the_tensors_are_those_of_the_devices() {
    let scratch = Scratch::new();
    for options in [
        "--devices 3 -sm tensor -ts 3,2,1",
        "--devices 2 -sm layer",
        "--devices 2 -sm tensor --cpu-moe",
    ] {
        let model = path("qwen3-30b");
        let mut words = vec![model.as_str(), "-c", "4096"];
        words.extend(options.split(' '));
        let data = data(&page(&scratch, &words).0);
        let report = &data["report"];
        let mut held = vec![0; list(&report["devices"]).len() + 1];
        for layer in list(&data["layers"]) {
            for t in list(&data["kinds"][number(&layer["k"])]) {
                let devices = list(&data["places"][number(&t["p"])]["devices"]);
                let lanes: Vec<usize> = match devices {
                    [] => vec![held.len() - 1],
                    some => some.iter().map(number).collect(),
                };
                let bytes = list(&t["b"]);
                for (i, lane) in lanes.into_iter().enumerate() {
                    held[lane] += bytes[i.min(bytes.len() - 1)].as_u64().unwrap();
                }
            }
        }
        let places = list(&report["devices"]).iter().chain([&report["host"]]);
        for (held, d) in held.iter().zip(places) {
            let of = |key: &str| d[key].as_u64().unwrap();
            let all = of("weights_bytes") + of("kv_bytes") + of("state_bytes");
            assert_eq!(*held, all, "{options}: {}", d["name"]);
        }
    }
}

#[track_caller]
fn loads_nothing(page: &str) {
    let namespaces = page.matches("\"http://www.w3.org/2000/svg\"").count();
    assert_eq!(page.matches("://").count(), namespaces);
    for (attribute, allowed) in [("href=\"", "href=\"data:,\""), ("url(", "url(#")] {
        let (all, fine) = (
            page.matches(attribute).count(),
            page.matches(allowed).count(),
        );
        assert_eq!(all, fine, "{attribute}");
    }
    for word in [
        "src=",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "import(",
        "sendBeacon",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'"));
}

fn tags(page: &str) -> Vec<&str> {
    page.match_indices('<')
        .filter_map(|(at, _)| page[at + 1..].split([' ', '>', '\n']).next())
        .filter(|t| t.chars().all(|c| c.is_ascii_lowercase()) && !t.is_empty())
        .collect()
}

#[test]
fn the_page_is_one_small_file_that_loads_nothing() {
    let scratch = Scratch::new();
    let model = path("llama-3.1-405b");
    let words = [model.as_str(), "--devices", "8", "-sm", "tensor"];
    let (first, ran) = page(&scratch, &words);
    loads_nothing(&first);
    assert!(first.len() < 300_000, "{} bytes", first.len());
    assert!(first.starts_with("<!doctype html>\n<html lang=\"en\">"));
    assert!(first.contains("<title>Meta Llama 3.1 405B · tpc plan</title>"));
    // Without scripts, the page shows the table.
    assert!(first.contains("per token: 253 all-reduces"));
    assert_eq!(page(&scratch, &words), (first, ran.clone()));
    let mut plain = vec!["plan"];
    plain.extend(words);
    assert_eq!(tpc(plain), ran);
    let files: Vec<_> = fs::read_dir(&scratch.0).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing but the page: {files:?}");
}

#[test]
fn hostile_names_stay_text() {
    const EVIL: &str =
        "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>&quot;\u{2028}'\u{202e}";
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/graphs/llama-dense.jsonl");
    let text = fs::read_to_string(capture).unwrap();
    let inside = serde_json::to_string(EVIL).unwrap();
    let inside = inside.trim_matches('"');
    let scratch = Scratch::new();
    let capture = |name: &str| {
        let text = text.replace("blk.0.attn_q.weight", name);
        scratch
            .file("capture.jsonl", text)
            .to_str()
            .unwrap()
            .to_owned()
    };
    let tame = page(&scratch, &["--graph", &capture("q"), "--devices", "2"]).0;
    let (wild, ran) = page(&scratch, &["--graph", &capture(inside), "--devices", "2"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(tags(&tame), tags(&wild));
    assert!(!wild.contains("</script><script>alert"));
    let names = data(&wild)["kinds"].to_string();
    assert!(names.contains("onerror=alert(2)"), "the name is told");
    // The title and the text for browsers without scripts contain the model's name.
    let spec = "llama-tiny:general.name=</title><script>alert(3)</script>";
    let model = scratch.model(spec);
    let (page, ran) = page(&scratch, &[model.to_str().unwrap()]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(tags(&page), tags(&tame));
    assert!(page.contains("<title>&lt;/title&gt;&lt;script&gt;alert(3)"));
    loads_nothing(&page);
}

#[test]
fn a_plan_that_does_not_fit_and_a_model_without_a_plan_have_pages() {
    let scratch = Scratch::new();
    let topology = scratch.file(
        "small.ron",
        "Topology(devices: [(name: \"small\", memory: Some(1e9), bandwidth: 1e12, flops: 1e14)])",
    );
    let model = path("llama-3.1-8b");
    let words = [
        model.as_str(),
        "--devices",
        "2",
        "--topology",
        topology.to_str().unwrap(),
    ];
    let (short, ran) = page(&scratch, &words);
    assert_eq!(ran.status, 1);
    let data_of_short = data(&short);
    assert_eq!(data_of_short["report"]["verdict"], "error");
    let found = list(&data_of_short["report"]["diagnostics"]);
    let error = found.iter().find(|d| d["code"] == "TPC0300").unwrap();
    assert!(error["help"].is_string());
    let broken = scratch.file("broken.gguf", "no model");
    let (refused, ran) = page(&scratch, &[broken.to_str().unwrap()]);
    assert_eq!(ran.status, 2);
    let found = data(&refused);
    assert!(found.get("report").is_none());
    assert!(list(&found["refused"])[0]["help"].is_string(), "{found}");
    loads_nothing(&refused);
}

#[test]
fn a_page_that_cannot_be_written_is_refused_and_leaves_no_half() {
    let scratch = Scratch::new();
    let model = path("qwen3-0.6b");
    let to = |file: &str| tpc(["plan", &model, "--html", file]);
    let nowhere = scratch.path("no/such/folder/plan.html");
    refuses(&to(nowhere.to_str().unwrap()), 2, "TPC0402");
    refuses(&to(scratch.0.to_str().unwrap()), 2, "TPC0402");
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
    if Path::new("/dev/full").exists() {
        refuses(&to("/dev/full"), 2, "TPC0402");
        assert!(fs::metadata("/dev/full").is_ok());
    }
}

#[cfg(unix)]
#[test]
fn a_link_keeps_pointing_at_the_page() {
    let scratch = Scratch::new();
    let real = scratch.file("real.html", "old");
    let link = scratch.path("link.html");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let ran = tpc([
        "plan",
        &path("qwen3-0.6b"),
        "--html",
        link.to_str().unwrap(),
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(
        fs::read_to_string(&real)
            .unwrap()
            .starts_with("<!doctype html>")
    );
}
