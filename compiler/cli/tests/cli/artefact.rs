//! `tpc compile`, `tpc check`, and commands on artefacts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tpc_artefact::{Entry, read_archive, write_archive};

use super::support::{Ran, SMALL, Scratch, TPC, json, path, refuses, tpc, tpc_in, words};

const GOLDEN: &str = "llama-dense-q4_k_m";

fn data(folder: &str, file: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    root.join(folder).join(file)
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn folder() -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    let name = format!("{GOLDEN}.gguf");
    let model = scratch.path(&name);
    fs::copy(data("golden", &name), &model).unwrap();
    (scratch, model)
}

fn compiled(scratch: &Scratch, model: &Path, options: &[&str]) -> PathBuf {
    let out = scratch.path("m.tpc");
    let mut arguments = vec![
        "compile".to_owned(),
        text(model),
        "-o".to_owned(),
        text(&out),
    ];
    arguments.extend(options.iter().map(|&o| o.to_owned()));
    let ran = tpc(arguments);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("m.tpc: "), "{}", ran.stdout);
    out
}

const SHORT: [&str; 4] = ["-c", "64", "-ub", "16"];

/// Replaces a text in an entry, and packs the archive again.
pub(crate) fn changed(artefact: &Path, entry: usize, from: &str, to: &str) {
    let bytes = fs::read(artefact).unwrap();
    let mut texts: Vec<(String, String)> = read_archive(&bytes)
        .unwrap()
        .iter()
        .map(|e| {
            (
                e.name.to_owned(),
                String::from_utf8(e.data.to_vec()).unwrap(),
            )
        })
        .collect();
    let text = texts[entry].1.replacen(from, to, 1);
    assert_ne!(text, texts[entry].1, "{from}");
    texts[entry].1 = text;
    let entries: Vec<Entry<'_>> = texts
        .iter()
        .map(|(name, text)| Entry {
            name,
            data: text.as_bytes(),
        })
        .collect();
    let mut out = Vec::new();
    write_archive(&mut out, &entries).unwrap();
    fs::write(artefact, out).unwrap();
}

#[test]
fn the_bytes_depend_on_model_and_options_alone() {
    let (here, model) = folder();
    let (there, _) = folder();
    let deep = there.path("a b/c");
    fs::create_dir_all(&deep).unwrap();
    let name = model.file_name().unwrap().to_str().unwrap();
    let options = ["--devices", "cpu,cpu", "-c", "64"];
    let relative = [&["compile", name, "-o", "one.tpc"], &options[..]].concat();
    let ran = tpc_in(&here.0, relative);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let first = fs::read(here.path("one.tpc")).unwrap();
    for threads in ["1", "7"] {
        let ran = Command::new(TPC)
            .current_dir(&deep)
            .env("RAYON_NUM_THREADS", threads)
            .env("TZ", "Asia/Tokyo")
            .args(["compile", &format!("../../{name}"), "-o", "two.tpc"])
            .args(options)
            .output()
            .unwrap();
        assert_eq!(Ran::from(ran).status, 0);
        assert_eq!(fs::read(deep.join("two.tpc")).unwrap(), first, "{threads}");
    }
    let whole = String::from_utf8_lossy(&first);
    for secret in [text(&here.0), text(&there.0), "/tmp".to_owned()] {
        assert!(!whole.contains(&secret), "{secret}");
    }
    let other = compiled(&here, &model, &["--devices", "cpu,cpu", "-c", "65"]);
    assert_ne!(fs::read(other).unwrap(), first);
}

#[test]
fn an_artefact_gives_the_logits_of_its_model() {
    let (scratch, model) = folder();
    let golden = text(&data("golden", &format!("{GOLDEN}.f32.logits")));
    for devices in ["cpu", "cpu,cpu"] {
        let placement = [&["--devices", devices][..], &SHORT].concat();
        let artefact = compiled(&scratch, &model, &placement);
        for executor in ["cpu", "reference"] {
            let logits = |subject: &Path, more: &[&str]| {
                let out = scratch.path("logits");
                let (subject, to) = (text(subject), text(&out));
                let fixed = [
                    "eval",
                    &subject,
                    "--golden",
                    &golden,
                    "--logits",
                    &to,
                    "--executor",
                    executor,
                    "-t",
                    "2",
                ];
                let ran = tpc([&fixed[..], more].concat());
                assert_eq!(ran.status, 0, "{devices} {executor}: {}", ran.stderr);
                assert!(ran.stdout.starts_with("nmse="), "{}", ran.stdout);
                fs::read(out).unwrap()
            };
            let f16 = ["-ctk", "f16", "-ctv", "f16"];
            let of_model = logits(&model, &[&placement[..], &f16].concat());
            assert!(
                logits(&artefact, &[]) == of_model,
                "{devices} {executor}: other logits"
            );
        }
    }
}

#[test]
fn an_artefact_holds_parts_of_blocks() {
    let scratch = Scratch::new();
    let model = scratch.path("model.gguf");
    let spec =
        "llama:layers=1,embd=256,heads=4,kv_heads=4,head_dim=64,ff=768,vocab=300,ctx=64,type=q4_k";
    assert_eq!(tpc(["synth", spec, "-o", &text(&model)]).status, 0);
    let four = ["--devices", "cpu,cpu,cpu,cpu", "-sm", "tensor"];
    let artefact = compiled(&scratch, &model, &[&four[..], &SHORT].concat());
    let name = text(&artefact);
    let program = tpc(["dump", &name, "--stage", "program"]).stdout;
    assert!(program.contains("parts = [[192:192], "), "{program}");
    let logits = |subject: &[&str], executor: &str| {
        let out = text(&scratch.path("logits"));
        let fixed = [
            "--tokens",
            "1,2,3",
            "--logits",
            &out,
            "--executor",
            executor,
        ];
        let ran = tpc([&["eval"], subject, &fixed].concat());
        assert_eq!(ran.status, 0, "{subject:?} {executor}: {}", ran.stderr);
        fs::read(out).unwrap()
    };
    let f16 = ["-c", "64", "-ctk", "f16", "-ctv", "f16"];
    let model = text(&model);
    let on = |devices: &[&str], executor| {
        logits(&[&[model.as_str()][..], devices, &f16].concat(), executor)
    };
    for executor in ["cpu", "reference"] {
        assert!(
            logits(&[&name], executor) == on(&four, executor),
            "{executor}"
        );
    }
    // In exact arithmetic the logits equal one device's, rounded to f32.
    assert!(on(&four, "reference") == on(&["--devices", "cpu"], "reference"));
    // Make a part that a device cannot store.
    changed(&artefact, 1, "parts = [[192:192], ", "parts = [[208:192], ");
    refuses(&tpc(["check", &name]), 2, "TPC0583");
}

#[test]
fn an_artefact_runs_and_is_timed() {
    let (scratch, model) = folder();
    let artefact = text(&compiled(&scratch, &model, &SHORT));
    let ids = [
        "--tokens",
        "1,2,3,4,5",
        "--temp",
        "0",
        "-n",
        "6",
        "--ignore-eos",
        "-t",
        "1",
    ];
    let run = |subject: &str| tpc([&["run", subject], &ids[..]].concat());
    let (of_model, of_artefact) = (run(&text(&model)), run(&artefact));
    assert_eq!(of_model.status, 0, "{}", of_model.stderr);
    assert_eq!(
        (of_artefact.status, &of_artefact.stdout),
        (0, &of_model.stdout),
        "{}",
        of_artefact.stderr
    );
    let found = json(&[
        "bench", &artefact, "-p", "4", "-n", "2", "-r", "1", "-t", "1", "--format", "json",
    ]);
    assert_eq!(found.as_array().unwrap().len(), 2);
    assert_eq!(found[0]["model_filename"], artefact);
    let of_file = json(&["inspect", &text(&model), "--format", "json"]);
    assert_eq!(found[0]["params"], of_file["n_params"]);
    // The test needs more cells than the artefact has.
    let ran = tpc(["bench", &artefact, "-p", "512"]);
    refuses(&ran, 2, "TPC0400");
}

#[test]
fn an_artefact_is_verified_checked_shown_and_dumped() {
    let (scratch, model) = folder();
    let artefact = text(&compiled(
        &scratch,
        &model,
        &[&["--devices", "cpu,cpu", "-sm", "tensor"][..], &SHORT].concat(),
    ));
    let ran = tpc(["verify", &artefact]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("proved: "), "{}", ran.stdout);
    let proof = json(&["verify", &artefact, "--format", "json"]);
    assert_eq!(proof["verdict"], "proved");
    let ran = tpc(["check", &artefact]);
    let (first, bits) = ran.stdout.split_once('\n').expect("two lines");
    assert_eq!(
        (ran.status, first),
        (0, format!("{artefact}: valid").as_str())
    );
    assert!(bits.starts_with("  bits    "), "{bits}");
    let shown = json(&["inspect", &artefact, "--format", "json"]);
    assert_eq!(shown["manifest"]["devices"].as_array().unwrap().len(), 2);
    assert_eq!(
        shown["manifest"]["model"]["files"][0],
        format!("{GOLDEN}.gguf")
    );
    assert!(shown["kernels"]["mul_mat"].as_u64().unwrap() > 10);
    assert!(shown["arenas"].as_array().unwrap().len() >= 6);
    assert_eq!(shown["sections"][1]["offset"].as_u64().unwrap() % 4096, 0);
    let table = tpc(["inspect", &artefact, "-v"]).stdout;
    for part in [
        "artefact of format 2",
        "sha256:",
        "memory",
        "launches",
        "mul_mat",
        "sections",
        "-c 64",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let dumped = tpc(["dump", &artefact, "--stage", "program"]);
    assert_eq!(dumped.status, 0, "{}", dumped.stderr);
    assert!(dumped.stdout.starts_with("tpir 1\n") && dumped.stdout.contains("\nqueue @dev1 = ["));
    refuses(&tpc(["dump", &artefact, "--stage", "model"]), 2, "TPC0400");
    refuses(&tpc(["inspect", &artefact, "--keys", "x"]), 2, "TPC0400");
    refuses(&tpc(["verify", &artefact, "--numeric"]), 2, "TPC0400");
}

#[test]
fn the_model_is_found_beside_or_where_it_is_said() {
    let (scratch, model) = folder();
    let artefact = text(&compiled(&scratch, &model, &SHORT));
    let moved = scratch.path("else.gguf");
    fs::rename(&model, &moved).unwrap();
    let run = |words: &[&str]| {
        tpc([&["run"], words, &["--tokens", "1,2", "-n", "1", "-t", "1"]].concat())
    };
    refuses(&run(&[&artefact]), 2, "TPC0584");
    let moved = text(&moved);
    for words in [
        &[&artefact, "--model", &moved][..],
        &["-m", &moved, &artefact],
        &[&artefact, &moved],
    ] {
        let ran = run(words);
        assert_eq!(ran.status, 0, "{words:?}: {}", ran.stderr);
    }
    let ran = tpc(["check", &artefact]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let verdict = format!("{artefact}: no model\n");
    assert!(ran.stdout.starts_with(&verdict), "{}", ran.stdout);
    assert!(ran.stderr.contains("TPC0590"), "{}", ran.stderr);
    let ran = tpc(["verify", &artefact]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("verified: ") && ran.stderr.contains("TPC0590"),
        "{}",
        ran.stderr
    );
    let ran = tpc(["verify", &artefact, "--model", &moved]);
    assert!(ran.stdout.starts_with("proved: "), "{}", ran.stderr);
    refuses(
        &tpc(["check", &artefact, "--model", "none.gguf"]),
        2,
        "TPC0100",
    );
    refuses(&run(&[&moved, &moved]), 2, "TPC0400");
    refuses(&tpc(["verify", &moved, &moved]), 2, "TPC0400");
    refuses(&tpc(["check", &moved]), 2, "TPC0400");
}

/// Checks that the answer is "rebuild needed", and names the field and the code.
#[track_caller]
fn rebuild(artefact: &str, more: &[&str], code: &str, field: &str) {
    let ran = tpc([&["check", artefact], more].concat());
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("rebuild needed") && ran.stdout.contains(field),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("tpc compile ") && ran.stderr.contains(code),
        "{}",
        ran.stderr
    );
    let found = tpc([&["check", artefact, "--format", "json"], more].concat());
    let found: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(
        (
            found["verdict"].as_str(),
            found["mismatches"][0]["code"].as_str()
        ),
        (Some("rebuild"), Some(code))
    );
}

#[test]
fn what_does_not_fit_is_told_before_anything_is_loaded() {
    let (scratch, model) = folder();
    let artefact = compiled(&scratch, &model, &SHORT);
    let name = text(&artefact);
    rebuild(&name, &["--devices", "cpu,cpu"], "TPC0588", "devices");
    let run = |more: &[&str]| {
        tpc([
            &["run", &name, "--tokens", "1,2", "-n", "1", "-t", "1"],
            more,
        ]
        .concat())
    };
    refuses(&run(&["--devices", "cpu,cpu"]), 1, "TPC0588");
    assert_eq!(run(&["--devices", "cpu"]).status, 0);
    // The artefact's own values and compile defaults are accepted.
    for own in [
        &["-c", "64"][..],
        &["-ub", "16"],
        &["-ctk", "f16", "-np", "1"],
    ] {
        let ran = run(own);
        assert_eq!(ran.status, 0, "{own:?}: {}", ran.stderr);
    }
    for (devices, more) in [("cpu,cpu", ""), ("cuda:0", " --target cuda")] {
        rebuild(&name, &["--devices", devices], "TPC0588", "devices");
        let ran = tpc(["check", &name, "--devices", devices]);
        let command = ran.stdout.lines().last().unwrap().trim();
        let wanted = format!("--devices {devices} -c 64 -ub 16{more}");
        assert!(command.ends_with(&wanted), "{command}");
    }
    for option in [
        &["-c", "32"][..],
        &["-ub", "8"],
        &["-ot", "ffn=CPU"],
        &["-sm", "tensor"],
        &["-np", "2"],
    ] {
        let ran = run(option);
        refuses(&ran, 2, "TPC0587");
        assert!(
            words(&ran.stderr).contains("-c 64 -ub 16"),
            "{}",
            ran.stderr
        );
    }
    // Another model with the same name: one number in its metadata differs.
    let mut bytes = fs::read(&model).unwrap();
    let key = b"llama.rope.freq_base";
    let at = bytes.windows(key.len()).position(|w| w == key).unwrap() + key.len() + 4;
    bytes[at] ^= 1;
    fs::write(&model, bytes).unwrap();
    rebuild(&name, &[], "TPC0585", "model.hash");
    refuses(&run(&[]), 1, "TPC0585");
    refuses(&tpc(["verify", &name]), 1, "TPC0585");
    fs::copy(data("golden", &format!("{GOLDEN}.gguf")), &model).unwrap();
    for (from, to, field) in [
        ("executor: \"cpu\"", "executor: \"tpu\"", "target.executor"),
        (
            "name: \"rows16\",\n                version: 1",
            "name: \"rows16\",\n                version: 2",
            "target.stored",
        ),
        ("host: []", "host: [\"avx1024\"]", "target.host"),
    ] {
        let artefact = compiled(&scratch, &model, &SHORT);
        changed(&artefact, 0, from, to);
        rebuild(&name, &[], "TPC0586", field);
        refuses(&run(&[]), 1, "TPC0586");
    }
    let artefact = compiled(&scratch, &model, &SHORT);
    changed(&artefact, 1, " rows16 [", " [");
    let ran = tpc(["check", &name]);
    assert_ne!(ran.status, 0, "weights are stored otherwise");
}

fn topology(scratch: &Scratch, name: &str, memory: &str) -> String {
    let device = format!("(name: \"a\", memory: {memory}, bandwidth: 1e11, flops: 1e12)");
    text(&scratch.file(name, format!("Topology(devices: [{device}])")))
}

#[test]
fn an_artefact_for_another_machine_is_told_with_the_command_that_mends_it() {
    let (scratch, model) = folder();
    let [here, other, small] = [
        ("here.ron", "\"8 GiB\""),
        ("other.ron", "\"9 GiB\""),
        ("small.ron", "\"100 MiB\""),
    ]
    .map(|(name, memory)| topology(&scratch, name, memory));
    let options = [
        "--topology",
        &here,
        "-c",
        "64",
        "-ub",
        "16",
        "--target",
        "cpu",
    ];
    let name = text(&compiled(&scratch, &model, &options));
    let run = |topology: &str| {
        let what = ["run", &name, "--tokens", "1,2", "-n", "1", "-t", "1"];
        tpc([&what[..], &["--topology", topology]].concat())
    };
    let ran = tpc(["check", &name, "--topology", &here]);
    assert_eq!(
        (ran.status, ran.stdout.contains("valid")),
        (0, true),
        "{}",
        ran.stderr
    );
    let ran = run(&here);
    assert_eq!(
        (ran.status, ran.stderr.contains("TPC05")),
        (0, false),
        "{}",
        ran.stderr
    );
    rebuild(&name, &["--topology", &other], "TPC0593", "topology");
    let ran = tpc(["check", &name, "--topology", &other]);
    let command = ran.stdout.lines().last().unwrap().trim();
    assert!(
        command.ends_with(&format!("--topology {other}")),
        "{command}"
    );
    let ran = run(&other);
    assert_eq!(
        (ran.status, ran.stderr.contains("TPC0593")),
        (0, true),
        "{}",
        ran.stderr
    );
    rebuild(&name, &["--topology", &small], "TPC0592", "memory");
    refuses(&run(&small), 1, "TPC0592");
    let name = text(&compiled(&scratch, &model, &SHORT));
    rebuild(&name, &["--topology", &here], "TPC0593", "found none");
}

#[test]
fn an_artefact_that_computes_something_else_is_not_proved() {
    let (scratch, model) = folder();
    // Swap two weights of equal type and shape: the program stays well-formed.
    let artefact = compiled(&scratch, &model, &SHORT);
    for (from, to) in [
        ("tensor = \"blk.0.attn_norm.weight\"", "tensor = \"x\""),
        (
            "tensor = \"blk.0.ffn_norm.weight\"",
            "tensor = \"blk.0.attn_norm.weight\"",
        ),
        ("tensor = \"x\"", "tensor = \"blk.0.ffn_norm.weight\""),
    ] {
        changed(&artefact, 1, from, to);
    }
    let name = text(&artefact);
    assert_eq!(tpc(["check", &name]).status, 0);
    refuses(&tpc(["verify", &name]), 1, "TPC0589");
    let artefact = compiled(&scratch, &model, &SHORT);
    changed(&artefact, 0, "window: None", "window: Some(Sliding(4))");
    refuses(&tpc(["verify", &name]), 1, "TPC0589");
}

#[test]
fn damaged_artefacts_are_refused() {
    let (scratch, model) = folder();
    let artefact = compiled(&scratch, &model, &SHORT);
    let whole = fs::read(&artefact).unwrap();
    let name = text(&artefact);
    let commands = |code: &str| {
        for command in [
            &["check", &name][..],
            &["inspect", &name],
            &["verify", &name],
            &["dump", &name, "--stage", "program"],
            &["run", &name, "--tokens", "1"],
            &["bench", &name],
            &["eval", &name, "--tokens", "1", "--logits", "/dev/null"],
        ] {
            refuses(&tpc(command), 2, code);
        }
    };
    fs::write(&artefact, &whole[..whole.len() / 2]).unwrap();
    commands("TPC0580");
    fs::write(&artefact, b"").unwrap();
    commands("TPC0580");
    fs::write(&artefact, &whole).unwrap();
    changed(&artefact, 0, "format: 2", "format: 9");
    commands("TPC0582");
    fs::write(&artefact, &whole).unwrap();
    changed(&artefact, 0, "(", "[");
    commands("TPC0581");
    fs::write(&artefact, &whole).unwrap();
    changed(&artefact, 1, "\nhome v5 =", "\nhome v6 =");
    commands("TPC0583");
    fs::remove_file(&artefact).unwrap();
    commands("TPC0402");
    // A zip archive with another name is recognised.
    let zip = scratch.file("archive.bin", &whole[..100]);
    refuses(&tpc(["check", &text(&zip)]), 2, "TPC0580");
}

#[test]
fn headers_suffice_to_compile() {
    let scratch = Scratch::new();
    let (out, rule) = (text(&scratch.path("h d.tpc")), text(&scratch.path("h.d")));
    let topology = scratch.file(
        "t.ron",
        "Topology(devices: [(name: \"a\", memory: None, bandwidth: 1e11, flops: 1e12), \
         (name: \"b\", memory: None, bandwidth: 1e11, flops: 1e12)], link: (bandwidth: 1e10, latency_us: 5.0), \
         host: (name: \"host\", memory: None, bandwidth: 6e10, flops: 1e12), \
         host_link: (bandwidth: 1e10, latency_us: 10.0))",
    );
    let header = path(SMALL);
    let ran = tpc([
        "compile",
        &header,
        "-o",
        &out,
        "--depfile",
        &rule,
        "-c",
        "256",
        "--topology",
        &text(&topology),
    ]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let rule = fs::read_to_string(rule).unwrap();
    let escaped = out.replace(' ', "\\ ");
    assert_eq!(
        rule,
        format!("{escaped}: \\\n  {header} \\\n  {}\n", text(&topology))
    );
    let shown = json(&["inspect", &out, "--format", "json"]);
    assert!(
        shown["manifest"]["topology"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );
    refuses(
        &tpc(["run", &out, "--model", &header, "--tokens", "1"]),
        2,
        "TPC0405",
    );
    // Inputs are not overwritten, and a failed compilation writes no file.
    refuses(&tpc(["compile", &header, "-o", &header]), 2, "TPC0400");
    let none = text(&scratch.path("none.tpc"));
    refuses(
        &tpc([
            "compile",
            &header,
            "-o",
            &none,
            "--devices",
            "2x3090",
            "--target",
            "cpu",
        ]),
        2,
        "TPC0401",
    );
    assert!(!Path::new(&none).exists());
}

#[test]
fn a_compiler_that_is_killed_leaves_a_whole_file() {
    let (scratch, model) = folder();
    let artefact = compiled(&scratch, &model, &SHORT);
    let former = fs::read(&artefact).unwrap();
    let new = {
        let other = compiled(&scratch, &model, &["-c", "80"]);
        fs::read(other).unwrap()
    };
    fs::write(&artefact, &former).unwrap();
    for wait in 0..24 {
        let mut child = Command::new(TPC)
            .args(["compile", &text(&model), "-o", &text(&artefact), "-c", "80"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(5 * wait));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = fs::read(&artefact).unwrap();
        assert!(
            found == former || found == new,
            "{wait}: {} bytes",
            found.len()
        );
    }
}

#[test]
fn the_artefact_of_format_1_is_accepted_or_refused_in_words() {
    let artefact = text(&data("artefacts", "format-1.tpc"));
    let model = text(&data("golden", "phi3-dense-q4_k_m.gguf"));
    let ran = tpc(["check", &artefact, "--model", &model]);
    match ran.status {
        0 => {
            let ran = tpc([
                "run", &artefact, "--model", &model, "--tokens", "1,2,3", "-n", "2", "-t", "1",
            ]);
            assert_eq!(ran.status, 0, "{}", ran.stderr);
            let ran = tpc(["verify", &artefact, "--model", &model]);
            assert_eq!(ran.status, 0, "{}", ran.stderr);
        }
        1 => assert!(ran.stdout.contains("tpc compile "), "{}", ran.stdout),
        _ => refuses(&ran, 2, "TPC0582"),
    }
}
