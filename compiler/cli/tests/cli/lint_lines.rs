//! `tpc lint -- llama-server …`.

use serde_json::Value as Json;

use super::support::{Ran, SMALL, Scratch, path, plan, refuses, tpc, words};

/// Runs `tpc lint` on a llama.cpp line; `options` precede the line.
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
        "not possible with llama.cpp 0.8.0: it aborts when it creates the context",
        "measured on 0.8.0, RPC",
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
        same.ends_with(
            "--devices 2 -sm tensor -ctk q8_0 -nkvo -c 4096 --engine llama.cpp --server"
        ),
        "{same}"
    );
    // The printed command has the same finding: the model fails with llama.cpp, but not with tpc.
    let again = tpc(same.split_whitespace().skip(1));
    assert!(again.stderr.contains("TPC0901"), "{}", again.stderr);
    let own = same.split(" --engine").next().unwrap_or_default();
    let own = tpc(own.split_whitespace().skip(1));
    assert_eq!(own.status, 0, "{}", own.stderr);
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
        ("", "llama-sevrer -m X.gguf"),
        ("", "llama-server --model=X.gguf"),
    ] {
        refuses(&line(options, SMALL, rest), 2, "TPC0400");
    }
    refuses(
        &line("", SMALL, "llama-server -m nowhere.gguf"),
        2,
        "TPC0100",
    );
    let told = |rest: &str| words(&line("", SMALL, rest).stderr);
    assert!(told("llama-sevrer -m X.gguf").contains("did you mean llama-server?"));
    assert!(told("llama-server --model=X.gguf").contains("write --model X.gguf"));
}

fn codes(options: &str, rest: &str) -> (i32, Vec<String>) {
    let ran = line(&format!("{options} --format json"), SMALL, rest);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    let all = json["findings"].as_array().unwrap();
    let all = all.iter().map(|f| f["code"].as_str().unwrap().to_owned());
    (ran.status, all.collect())
}

#[test]
fn wrong_values_are_findings_beside_the_others() {
    for wrong in [
        "-ctk q4_K",
        "-ctk q9_9",
        "-sm graph",
        "-sm rows",
        "-ngl lots",
        "-ts 3,1,1",
        "-ts a,b",
        "-ot ffn_(up=CPU",
        "-ot ffn=Nowhere",
        "-ot ffn=CUDA2",
        "-ot ffn",
        "-sm none -mg 2",
        "-c -5",
        "-t foo",
        "--port abc",
        "--temp x",
    ] {
        // `-ub 4096` without `-b` adds a finding.
        let rest = format!("llama-server -m X.gguf {wrong} -ub 4096");
        let (status, found) = codes("--devices 2", &rest);
        let of = |code: &str| found.iter().filter(|c| *c == code).count();
        let counts = (status, of("TPC0920"), of("TPC0910"));
        assert_eq!(counts, (1, 1, 1), "{wrong}: {found:?}");
    }
    let ran = line(
        "--devices 2",
        SMALL,
        "llama-server -m X.gguf -sm graph -c 512",
    );
    assert!(words(&ran.stderr).contains("ik_llama"), "{}", ran.stderr);
    assert!(ran.stdout.contains("-sm layer"), "{}", ran.stdout);
}

#[test]
fn devices_that_a_line_names_are_planned_for() {
    let (status, found) = codes("", "llama-server -m X.gguf -sm none -mg 3 -c 512");
    assert_eq!(status, 0, "{found:?}");
    assert!(found.iter().any(|c| c == "TPC0916"), "{found:?}");
    let ran = line("", SMALL, "llama-server -m X.gguf -ot ffn=CUDA3 -c 512");
    assert!(ran.stdout.contains("--devices 4 "), "{}", ran.stdout);
    assert!(ran.stderr.contains("…=CUDA3"), "{}", ran.stderr);
}

#[test]
fn chunks_of_a_batch_have_the_whole_context() {
    let (status, found) = codes("--devices 1", "llama-perplexity -m X.gguf -f wiki.test.raw");
    assert!(
        status == 0 && !found.iter().any(|c| c == "TPC0806"),
        "{found:?}"
    );
    let (_, found) = codes("--devices 1", "llama-server -m X.gguf -c 2048 -np 4");
    assert!(found.iter().any(|c| c == "TPC0806"), "{found:?}");
}

#[test]
fn layers_that_stay_on_the_host_are_why_devices_are_idle() {
    let ran = line("--devices 2", SMALL, "llama-bench -m X.gguf -ngl 0");
    let told = words(&ran.stderr);
    assert!(
        told.contains("-ngl 0 keeps all layers on the host"),
        "{told}"
    );
    assert!(!told.contains("proportion"), "{told}");
}

#[test]
fn options_of_tpc_behind_the_line_are_sent_before_it() {
    let ran = line(
        "--devices 2",
        SMALL,
        "llama-server -m X.gguf -c 512 --deny warnings",
    );
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(
        words(&ran.stderr).contains("before the `--`"),
        "{}",
        ran.stderr
    );
}

fn held(options: &str) -> Vec<u64> {
    let ran = plan(GPT_OSS, &format!("{options} --format json"));
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    let devices = json["devices"].as_array().unwrap();
    devices
        .iter()
        .map(|d| d["total_bytes"].as_u64().unwrap())
        .collect()
}

const GPT_OSS: &str = "gpt-oss-120b";

#[test]
fn a_split_by_layers_counts_layers_whatever_they_hold() {
    let options = "-m X.gguf -sm layer -ncmoe 14 -ngl 99 -c 8192 -fit off";
    let machine = "--devices 2x3090 --format json";
    let error = |line_options: &str| {
        let ran = line(machine, GPT_OSS, &format!("llama-server {line_options}"));
        let json: Json = serde_json::from_str(&ran.stdout).unwrap();
        let all = json["findings"].as_array().unwrap();
        let found = all.iter().find(|f| f["code"] == "TPC0300").cloned();
        (ran.status, found.map(|f| f["entity"].clone()))
    };
    // The first half of the layers lacks its experts, so the second card is overfull.
    let full = (1, Some(serde_json::json!("3090#1")));
    assert_eq!(error(&format!("{options} -ts 1,1")), full);
    // By default llama.cpp divides by memory, with the same result.
    assert_eq!(error(options), full);
    let ran = plan(
        GPT_OSS,
        "--devices 2x3090 -sm layer -ncmoe 14 -c 8192 --format json",
    );
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    let printed = json["commands"]["llama.cpp"].as_str().unwrap();
    let (_, rest) = printed.split_once(".gguf ").unwrap();
    assert_eq!(error(&format!("-m X.gguf {rest} -fit off")), (0, None));
    // With the same proportions, tpc has the same plan.
    let split = rest.split(' ').skip_while(|w| *w != "-ts").nth(1).unwrap();
    let asked = held("--devices 2x3090 -sm layer -ncmoe 14 -c 8192");
    let again = held(&format!(
        "--devices 2x3090 -sm layer -ts {split} -ncmoe 14 -c 8192"
    ));
    assert_eq!(asked, again);
}

#[test]
fn what_the_engine_fits_by_itself_is_no_error() {
    let severity = |rest: &str| {
        let ran = line(
            "--devices 1x3090 --format json",
            "llama-3.1-70b",
            &format!("llama-server -m X.gguf {rest}"),
        );
        let json: Json = serde_json::from_str(&ran.stdout).unwrap();
        let all = json["findings"].as_array().unwrap();
        let found = all.iter().find(|f| f["code"] == "TPC0300");
        (ran.status, found.map(|f| f["severity"].clone()))
    };
    assert_eq!(severity("-c 4096"), (0, Some("note".into())));
    assert_eq!(severity("-c 4096 -fit off"), (1, Some("error".into())));
    assert_eq!(severity("-c 4096 -ngl 99"), (1, Some("error".into())));
}

#[test]
fn each_program_has_its_context() {
    for (rest, cells) in [
        ("llama-bench -m X.gguf", 512),
        ("llama-bench -m X.gguf -p 1024 -n 64 -d 4096", 5120),
        ("llama-perplexity -m X.gguf", 2048),
        ("llama-perplexity -m X.gguf -c 4096", 4096),
    ] {
        let ran = line("--devices 1", SMALL, rest);
        assert_eq!(ran.status, 0, "{rest}: {}", ran.stderr);
        let same = format!(" -c {cells}");
        assert!(ran.stdout.contains(&same), "{rest}: {}", ran.stdout);
    }
}

#[test]
fn the_lists_of_a_benchmark_are_linted_one_by_one() {
    let ran = line(
        "--devices 2",
        SMALL,
        "llama-bench -m X.gguf -sm tensor,layer -ctk q8_0,f16 -ctv f16",
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for label in [
        " -sm tensor -ctk q8_0: ",
        " -sm layer -ctk f16: ",
        "4 files: ",
    ] {
        assert!(ran.stdout.contains(label), "{label}: {}", ran.stdout);
    }
    let many = line("", SMALL, "llama-bench -m X.gguf -ngl 0-99");
    refuses(&many, 2, "TPC0400");
}

#[test]
fn lines_that_do_not_start_are_errors() {
    for (rest, code, cure) in [
        (
            "llama-server -m X.gguf -fa -c 8192",
            "TPC0920",
            "on, off or auto",
        ),
        (
            "llama-server -m X.gguf -fa maybe -c 512",
            "TPC0920",
            "on, off or auto",
        ),
        ("llama-server -m X.gguf -c 8k", "TPC0920", "-c 8192"),
        (
            "llama-server -m X.gguf -c 512 --foo",
            "TPC0913",
            "did you mean",
        ),
        (
            "llama-server -m X.gguf --ctx-size=512",
            "TPC0913",
            "--ctx-size 512",
        ),
        (
            "llama-server -m X.gguf -c 512 -fmoe",
            "TPC0913",
            "ik_llama.cpp",
        ),
    ] {
        let ran = line("--devices 2", SMALL, rest);
        assert_eq!(ran.status, 1, "{rest}: {}", ran.stderr);
        let told = words(&ran.stderr);
        let (_, found) = told.split_once(code).unwrap_or_else(|| panic!("{told}"));
        assert!(found.contains(cure), "{cure}: {told}");
    }
    let ran = line(
        "--devices 2",
        SMALL,
        "ik_llama-server -m X.gguf -sm graph -mla 3 -amb 512 -fmoe -rtr -fa -c 512",
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("TPC09"), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("--engine ik_llama.cpp"),
        "{}",
        ran.stdout
    );
}
