//! `tpc lint -- llama-server …`.

use serde_json::Value as Json;

use super::support::{Ran, SMALL, Scratch, path, refuses, tpc, words};

/// `tpc lint` of a line of llama.cpp for a header, with options before it.
fn line(options: &str, header: &str, line: &str) -> Ran {
    let path = path(header);
    let mut arguments = vec!["lint".to_owned()];
    arguments.extend(options.split_whitespace().map(str::to_owned));
    arguments.push("--".to_owned());
    let words = line.split_whitespace();
    arguments.extend(words.map(|w| {
        if w == "X.gguf" {
            path.clone()
        } else {
            w.to_owned()
        }
    }));
    tpc(arguments)
}

#[test]
fn the_engine_and_tpc_are_told_apart() {
    let ran = line(
        "",
        SMALL,
        "llama-server -m X.gguf -sm tensor -nkvo -ctk q8_0 -fit off -c 4096",
    );
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let told = words(&ran.stderr);
    for part in [
        "TPC0901",
        "TPC0906",
        "TPC0916",
        "llama.cpp silently computes wrong logits",
        "tpc copies",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let same = ran
        .stdout
        .lines()
        .find_map(|l| l.strip_prefix("the same with tpc: "));
    let same = same.unwrap_or_else(|| panic!("{}", ran.stdout));
    assert!(
        same.ends_with("--devices 2 -sm tensor -ctk q8_0 -nkvo -c 4096"),
        "{same}"
    );
    // What is printed is what is linted.
    let again = tpc(same.split_whitespace().skip(1));
    assert_eq!(again.status, 0, "{}", again.stderr);
}

#[test]
fn a_sound_line_has_nothing_but_notes() {
    let ran = line(
        "--devices 2",
        SMALL,
        "llama-server -m X.gguf -sm tensor -c 8192 -fit off --port 80 --jinja",
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("TPC09"), "{}", ran.stderr);
}

#[test]
fn devices_come_from_the_option_or_from_the_line() {
    let devices = |options: &str, rest: &str| -> Json {
        let ran = line(
            &format!("{options} --format json"),
            SMALL,
            &format!("llama-cli -m X.gguf {rest}"),
        );
        let json: Json = serde_json::from_str(&ran.stdout).unwrap();
        json["devices"].clone()
    };
    assert_eq!(devices("", ""), serde_json::json!([2]));
    assert_eq!(devices("", "-sm tensor -ts 3,1,1"), serde_json::json!([3]));
    assert_eq!(
        devices("", "-dev CUDA0,CUDA1,CUDA2,CUDA3"),
        serde_json::json!([4])
    );
    assert_eq!(
        devices("--devices 2..3", "-sm tensor"),
        serde_json::json!([2, 3])
    );
}

#[test]
fn the_file_of_a_fetched_model_stands_before_the_line() {
    let ran = tpc([
        "lint",
        &path(SMALL),
        "--",
        "llama-server",
        "-hf",
        "a/b",
        "-c",
        "512",
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("the same with tpc: tpc plan "),
        "{}",
        ran.stdout
    );
}

/// The machine is said before the line, and the equivalent command has all of it.
#[test]
fn the_equivalent_keeps_the_machine() {
    let scratch = Scratch::new();
    let text = "Topology(devices: [(name: \"a\", bandwidth: 1e12, flops: 1e14)])";
    let file = scratch.file("machine.ron", text).display().to_string();
    let machine = format!("--devices 3 --topology {file}");
    let ran = line(&machine, SMALL, "llama-server -m X.gguf -c 512");
    assert!(ran.stdout.contains(&machine), "{}", ran.stdout);
    let machine = format!("--topology {file}");
    let ran = line(&machine, SMALL, "llama-server -m X.gguf -c 512 -ts 1,1,1");
    let expected = format!("--devices 3 {machine}");
    assert!(ran.stdout.contains(&expected), "{}", ran.stdout);
}

#[test]
fn lines_that_cannot_be_read_are_told() {
    for (options, rest) in [
        ("", "llama-server -hf a/b"),
        ("", "llama-server -sm tensor -m"),
        ("", "vllm serve X.gguf"),
        ("", "LLAMA_ARG_MODEL=X.gguf"),
        ("-c 512", "llama-server -m X.gguf"),
        ("", "llama-server -m X.gguf -ctk q9_9"),
        ("", "llama-server -m X.gguf -sm rows"),
    ] {
        refuses(&line(options, SMALL, rest), 2, "TPC0400");
    }
    refuses(
        &line("", SMALL, "llama-server -m nowhere.gguf"),
        2,
        "TPC0100",
    );
    refuses(
        &line("", SMALL, "llama-server -m X.gguf -ot ffn=Nowhere"),
        2,
        "TPC0410",
    );
}

#[test]
fn options_of_tpc_behind_the_line_are_sent_before_it() {
    let ran = line(
        "--devices 2",
        SMALL,
        "llama-server -m X.gguf -c 512 --deny warnings",
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        words(&ran.stderr).contains("before the `--`"),
        "{}",
        ran.stderr
    );
}
