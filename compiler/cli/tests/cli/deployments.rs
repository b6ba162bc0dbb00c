//! Deployments: drafts, adapters, RPC servers, and memory shared with the host.

use serde_json::Value as Json;

use super::support::{Ran, SMALL, Scratch, path, plan, refuses, tpc, words};

/// Runs `tpc lint` on a command line; `X.gguf` stands for the model, `D.gguf` for the draft.
fn lint(options: &str, [model, draft]: [&str; 2], line: &str) -> Ran {
    let files = [path(model), path(draft)];
    let said = line.split_whitespace().map(|w| match w {
        "X.gguf" => files[0].clone(),
        "D.gguf" => files[1].clone(),
        w => w.to_owned(),
    });
    let options = options.split_whitespace().map(str::to_owned);
    let head = ["lint".to_owned()].into_iter().chain(options);
    tpc(head.chain(["--".to_owned()]).chain(said))
}

fn json(model: &str, options: &str) -> Json {
    let ran = plan(model, &format!("{options} --format json"));
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stderr))
}

fn number(value: &Json) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_draft_with_a_file_of_its_own_needs_no_blocks_of_the_model() {
    let told = |line: &str| {
        let ran = lint("--devices 2x3090", ["llama-3.1-8b", SMALL], line);
        (ran.status, words(&ran.stderr))
    };
    let (status, text) =
        told("llama-server -m X.gguf --spec-type draft-mtp -md mtp-away.gguf -c 8192");
    assert_eq!(status, 0, "{text}");
    assert!(
        text.contains("TPC0909") && !text.contains("TPC0163"),
        "{text}"
    );
    assert!(text.contains("mtp-away.gguf: file not found"), "{text}");
    let (status, text) = told("llama-server -m X.gguf --spec-type draft-mtp -c 8192");
    assert!(status == 1 && text.contains("TPC0163"), "{text}");
}

#[test]
fn drafts_are_counted_and_their_tokens_compared() {
    let line = "llama-server -m X.gguf -md D.gguf --spec-type draft-simple -c 32768 -np 1";
    let alike = lint("--devices 2x3090", ["qwen3-14b", SMALL], line);
    assert_eq!(alike.status, 0, "{}", alike.stderr);
    for code in ["TPC0909", "TPC0932"] {
        assert!(!alike.stderr.contains(code), "{}", alike.stderr);
    }
    let same = alike
        .stdout
        .lines()
        .find(|l| l.contains("the same with tpc"));
    assert!(same.unwrap().contains(&format!("-md {}", path(SMALL))));
    let other = lint("--devices 2x3090", ["llama-3.1-8b", SMALL], line);
    assert_eq!(other.status, 1, "{}", other.stderr);
    assert!(other.stderr.contains("TPC0932"), "{}", other.stderr);
    // For this draft, llama.cpp does not compare the vocabulary.
    let line = line.replace("draft-simple", "draft-eagle3");
    let other = lint("--devices 2x3090", ["llama-3.1-8b", SMALL], &line);
    assert_eq!(other.status, 0, "{}", other.stderr);
}

#[test]
fn the_memory_of_a_draft_is_part_of_the_plan() {
    let draft = path(SMALL);
    let options = "--devices 2x3090 -sm layer -ts 1,1 -c 16384";
    let alone = json("qwen3-14b", options);
    let with = |more: &str| json("qwen3-14b", &format!("{options} -md {draft} {more}"));
    let total = |report: &Json, d: usize| number(&report["devices"][d]["total_bytes"]);
    let beside = |report: &Json, d: usize| number(&report["devices"][d]["beside_bytes"]);
    let both = with("");
    for d in 0..2 {
        assert!(beside(&both, d) > 0);
        assert_eq!(total(&both, d), total(&alone, d) + beside(&both, d));
    }
    assert_eq!(both["beside"][0]["what"], "draft");
    let kv = |report: &Json| -> u64 {
        let devices = report["beside"][0]["devices"].as_array().unwrap().iter();
        devices.map(|d| number(&d["kv"])).sum()
    };
    // K and V in f16: 28 layers, 8 heads of 128.
    assert_eq!(kv(&both), 28 * 16384 * 8 * 128 * 2 * 2);
    assert!(kv(&with("-ctkd q8_0 -ctvd q8_0")) < kv(&both) * 6 / 10);
    let one = with("-devd dev1");
    assert!(one["devices"][0].get("beside_bytes").is_none());
    assert!(beside(&one, 1) > beside(&both, 1));
    let host = with("-devd none");
    assert!(host["devices"][1].get("beside_bytes").is_none());
    assert!(number(&host["host"]["beside_bytes"]) > 0);
    refuses(&plan("qwen3-14b", "-md nowhere.gguf"), 2, "TPC0400");
}

#[test]
fn an_adapter_is_with_the_layers_that_it_changes() {
    // A model file serves as the adapter, because its tensors have layers.
    let file = path(SMALL);
    let with = json(
        "qwen3-14b",
        &format!("--devices 2x3090 -sm layer -ts 3,1 -c 4096 --lora {file}"),
    );
    let of = |d: usize| number(&with["devices"][d]["beside_bytes"]);
    assert!(of(0) > of(1), "{} {}", of(0), of(1));
    let host = json(
        "qwen3-14b",
        &format!("--devices 2x3090 -ngl 0 -c 4096 --lora {file}"),
    );
    assert!(host["devices"][0].get("beside_bytes").is_none());
}

#[test]
fn servers_and_the_devices_here_count() {
    let ran = lint(
        "",
        [SMALL, SMALL],
        "llama-server -m X.gguf --rpc a:1,b:1 -fit off -c 4096",
    );
    assert!(ran.stdout.contains("--devices 3"), "{}", ran.stdout);
    let text = words(&ran.stderr);
    assert!(
        text.contains("TPC0916") && text.contains("1 local and 2 remote"),
        "{text}"
    );
    assert!(
        text.contains("TPC0908") && text.contains("1.25 GB/s and 50 µs"),
        "{text}"
    );
    let named = lint(
        "--devices 2x3090",
        [SMALL, SMALL],
        "llama-server -m X.gguf --rpc a:1 -c 4096",
    );
    let text = words(&named.stderr);
    assert!(
        text.contains("TPC0908") && !text.contains("TPC0916"),
        "{text}"
    );
    let scratch = Scratch::new();
    let file = scratch.file(
        "two.ron",
        r#"(devices: [(card: "Strix Halo", count: 2)], link: (bandwidth: "200 Gbit/s", latency_us: 20.0))"#,
    );
    let topology = format!("--topology {}", file.display());
    let stated = lint(
        &topology,
        [SMALL, SMALL],
        "llama-server -m X.gguf --rpc a:1 -c 4096",
    );
    assert!(!stated.stderr.contains("TPC0908"), "{}", stated.stderr);
    assert!(!stated.stdout.contains("--devices"), "{}", stated.stdout);
}

#[test]
fn plans_have_servers() {
    let with = json(SMALL, "--devices 3x3090 --rpc a:1 -sm layer -c 4096");
    let links = with["machine"]["links"].as_array().unwrap();
    let ends = |l: &Json| [number(&l["a"]), number(&l["b"])];
    let all: Vec<_> = links.iter().map(ends).collect();
    assert_eq!(all, [[0, 1], [0, 2]]);
    assert!(links.iter().all(|l| l["link"]["kind"] == "network"));
    let codes = with["diagnostics"].as_array().unwrap().iter();
    assert!(codes.into_iter().any(|d| d["code"] == "TPC0908"));
    // With a tensor split, llama.cpp lists servers last.
    let tensor = json(SMALL, "--devices 3x3090 --rpc a:1 -sm tensor -c 4096");
    let links = tensor["machine"]["links"].as_array().unwrap();
    let all: Vec<_> = links.iter().map(ends).collect();
    assert_eq!(all, [[0, 2], [1, 2]]);
    let counted = json(SMALL, "--rpc a:1,b:1 -c 4096");
    assert_eq!(counted["devices"].as_array().unwrap().len(), 3);
    refuses(&plan(SMALL, "--rpc host"), 2, "TPC0400");
}

#[test]
fn sums_of_two_servers_are_told() {
    let of = |options: &str, line: &str| {
        let ran = lint(options, [SMALL, SMALL], line);
        ran.stderr.contains("TPC0931")
    };
    let line = "llama-server -m X.gguf -sm tensor --rpc a:1,b:1 -c 4096";
    assert!(of("", line) && of("--devices 2x3090", line));
    assert!(!of("--devices 3x3090", line));
    assert!(!of("", &line.replace("tensor", "layer")));
    assert!(!of("", &line.replace(",b:1", "")));
}

#[test]
fn a_pool_holds_devices_and_host_together() {
    let report = json("llama-3.1-70b", "--devices GB10 -c 8192");
    let pool = &report["pool"];
    let device = number(&report["devices"][0]["total_bytes"]);
    let host = number(&report["host"]["total_bytes"]);
    assert_eq!(number(&pool["total_bytes"]), device + host);
    assert_eq!(report["verdict"], "ok");
    // Layers on the host are in the same memory, so `-ngl 20` does not help.
    let half = "--devices GB10 -c 8192 --host-memory 40GiB";
    let small = plan("llama-3.1-70b", half);
    assert_eq!(small.status, 1, "{}", small.stderr);
    assert!(small.stderr.contains("share"), "{}", small.stderr);
    let moved = plan("llama-3.1-70b", &format!("{half} -ngl 20"));
    assert_eq!(moved.status, 1, "{}", moved.stderr);
    assert!(
        json("llama-3.1-70b", "--devices 3090 -c 8192")
            .get("pool")
            .is_none()
    );
    let two = json(SMALL, "--devices 2xGB10 -sm layer -c 4096");
    assert_eq!(two["machine"]["link"]["kind"], "network");
}

#[test]
fn the_memory_of_the_host_is_judged() {
    let of = |options: &str| {
        plan(
            "mixtral-8x7b",
            &format!("--devices 3090 -cmoe -c 4096 {options}"),
        )
    };
    assert_eq!(of("").status, 0);
    assert_eq!(of("--host-memory 64GiB").status, 0);
    let small = of("--host-memory 16GiB");
    assert!(
        small.status == 1 && small.stderr.contains("TPC0300"),
        "{}",
        small.stderr
    );
    refuses(&of("--host-memory lots"), 2, "TPC0400");
}

#[test]
fn attention_that_is_not_fused_is_told() {
    let of = |line: &str| lint("--devices 2x3090", [SMALL, SMALL], line).stderr;
    assert!(of("llama-server -m X.gguf -fa off -c 4096").contains("TPC0930"));
    let tensor = of("llama-server -m X.gguf -sm tensor -fa off -c 4096");
    assert!(
        tensor.contains("TPC0904") && !tensor.contains("TPC0930"),
        "{tensor}"
    );
    assert!(!of("llama-server -m X.gguf -fa on -c 4096").contains("TPC0930"));
}

fn written(
    scratch: &Scratch,
    name: &str,
    arch: &str,
    keys: &[(&str, u32)],
    tensors: &[(&str, &[u64])],
) -> String {
    let mut writer = tpc_gguf::GgufWriter::new(name);
    writer.meta("general.architecture", arch);
    for (key, value) in keys {
        writer.meta(key, *value);
    }
    for (tensor, ne) in tensors {
        writer.tensor(tensor, tpc_ir::DType::F16, ne);
    }
    let mut bytes = Vec::new();
    writer.write_header(&mut bytes).unwrap();
    scratch.file(name, bytes).to_str().unwrap().to_owned()
}

#[test]
fn a_draft_of_an_unknown_kind_is_counted_by_its_header() {
    let scratch = Scratch::new();
    let keys = [
        ("odd-assistant.block_count", 2),
        ("odd-assistant.embedding_length", 256),
        ("odd-assistant.feed_forward_length", 512),
        ("odd-assistant.attention.head_count", 4),
        ("odd-assistant.attention.head_count_kv", 2),
        ("odd-assistant.attention.key_length", 64),
        ("odd-assistant.attention.value_length", 64),
    ];
    let of = |second: &str| {
        let tensors: [(&str, &[u64]); 4] = [
            ("token_embd.weight", &[256, 1000]),
            ("blk.0.attn_q.weight", &[256, 256]),
            ("blk.1.attn_q.weight", &[256, 256]),
            (second, &[256, 128]),
        ];
        let file = written(&scratch, "odd.gguf", "odd-assistant", &keys, &tensors);
        let options = "--devices 2x3090 -sm layer -ts 1,2 -c 1000 -md";
        json("qwen3-14b", &format!("{options} {file}"))
    };
    // Drafting blocks without K and V weights read the model's cache.
    let shared = of("blk.1.ffn_up.weight");
    let parts = shared["beside"][0]["devices"].as_array().unwrap();
    assert_eq!((number(&parts[0]["kv"]), number(&parts[1]["kv"])), (0, 0));
    // Each device has one block. The second device also has the output, a copy of the embedding.
    assert_eq!(number(&parts[0]["weights"]), 2 * 256 * 256);
    assert_eq!(
        number(&parts[1]["weights"]),
        2 * (256 * 256 + 256 * 128 + 256 * 1000)
    );
    assert_eq!(
        number(&shared["beside"][0]["host"]["weights"]),
        2 * 256 * 1000
    );
    let own = of("blk.1.attn_k.weight");
    let parts = own["beside"][0]["devices"].as_array().unwrap();
    assert_eq!(number(&parts[1]["kv"]), 1000 * 2 * (64 + 64) * 2);
}

#[test]
fn an_encoder_is_on_the_first_device_here() {
    let scratch = Scratch::new();
    let keys = [
        ("clip.vision.image_size", 448),
        ("clip.vision.patch_size", 14),
        ("clip.vision.embedding_length", 1024),
        ("clip.vision.feed_forward_length", 4096),
    ];
    let tensors: [(&str, &[u64]); 1] = [("v.blk.0.attn_q.weight", &[1024, 1024])];
    let file = written(&scratch, "mmproj.gguf", "clip", &keys, &tensors);
    let at = |options: &str| {
        let report = json(
            SMALL,
            &format!("--devices 2x3090 -c 4096 --mmproj {file} {options}"),
        );
        let b = &report["beside"][0];
        let devices = b["devices"].as_array().unwrap().iter().chain([&b["host"]]);
        let places: Vec<usize> = devices
            .enumerate()
            .filter(|(_, p)| number(&p["weights"]) == 2 << 20)
            .map(|(i, _)| i)
            .collect();
        places
    };
    assert_eq!(at(""), [0]);
    assert_eq!(at("--no-mmproj-offload"), [2]);
    assert_eq!(at("-mmdev dev1"), [1]);
    assert_eq!(at("--rpc a:1 -sm layer"), [1]);
    let report = json(SMALL, &format!("--devices 3090 -c 4096 --mmproj {file}"));
    let compute = number(&report["beside"][0]["devices"][0]["compute"]);
    assert!((8 << 20..64 << 20).contains(&compute), "{compute}");
}

#[test]
fn drafts_that_read_the_model_are_counted_and_never_planned_alone() {
    let scratch = Scratch::new();
    const KV: [(&str, &[u64]); 2] = [
        ("blk.0.attn_k.weight", &[512, 128]),
        ("blk.0.attn_v.weight", &[512, 128]),
    ];
    for (arch, caches) in [
        ("eagle3", true),
        ("dflash", true),
        ("gemma4-assistant", false),
    ] {
        let mut tensors: Vec<(&str, &[u64])> = vec![
            ("output.weight", &[256, 128]),
            ("blk.0.attn_q.weight", &[512, 256]),
            ("blk.0.ffn_up.weight", &[256, 512]),
        ];
        if caches {
            tensors.extend(KV);
        }
        let keys = [
            ("block_count", 1),
            ("embedding_length", 256),
            ("attention.head_count", 8),
            ("attention.head_count_kv", 4),
            ("attention.key_length", 32),
            ("attention.value_length", 32),
        ];
        let keys = keys.map(|(key, n)| (format!("{arch}.{key}"), n));
        let keys: Vec<(&str, u32)> = keys.iter().map(|(key, n)| (key.as_str(), *n)).collect();
        let draft = written(&scratch, "draft.gguf", arch, &keys, &tensors);
        let elements = tensors.iter().map(|(_, ne)| ne.iter().product::<u64>());
        let weights = 2 * elements.sum::<u64>();
        let shown = tpc(["inspect", draft.as_str()]);
        let said = "drafts tokens for another model";
        assert!(shown.stdout.contains(said), "{arch}: {}", shown.stdout);
        let alone = tpc(["plan", draft.as_str(), "--devices", "2"]);
        refuses(&alone, 1, "TPC0150");
        assert!(alone.stderr.contains("--model-draft"), "{}", alone.stderr);
        let options = "--devices 2x3090 -sm layer -ts 1,1 -c 4096";
        let report = json("qwen3-14b", &format!("{options} -md {draft}"));
        let beside = &report["beside"][0];
        let sum = |key: &str| -> u64 {
            let devices = beside["devices"].as_array().unwrap().iter();
            let all = devices.chain([&beside["host"]]);
            all.map(|d| d[key].as_u64().unwrap_or(0)).sum()
        };
        assert_eq!(sum("weights"), weights, "{arch}: {beside}");
        // Keys and values in f16: 4 heads of 32.
        let kv = if caches { 4096 * 4 * 32 * 2 * 2 } else { 0 };
        assert_eq!(sum("kv"), kv, "{arch}: {beside}");
    }
}
