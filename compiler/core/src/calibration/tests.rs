use super::*;

const MARKDOWN: &str = "\
ggml_cuda_init: found 2 CUDA devices
| model                          |       size |     params | backend    | ngl |     sm |            test |                  t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | -----: | --------------: | -------------------: |
| llama 8B Q4_K - Medium         |   4.58 GiB |     8.03 B | CUDA       |  99 | tensor |           pp512 |      2368.80 ± 93.24 |
| llama 8B Q4_K - Medium         |   4.58 GiB |     8.03 B | CUDA       |  99 | tensor |   tg128 @ d4096 |        142.10 ± 0.24 |
| llama 8B Q4_K - Medium         |   4.58 GiB |     8.03 B | CUDA       |  99 | tensor |     pp512+tg128 |        600.00 ± 0.24 |

build: 1234abcd (9000)
";

fn rows(text: &str) -> Reading {
    read("bench", text).unwrap_or_else(|d| panic!("{text}: {d:?}"))
}

#[test]
fn tables_are_read() {
    let found = rows(MARKDOWN);
    assert_eq!(found.rows.len(), 2);
    let [prompt, generation] = [&found.rows[0], &found.rows[1]];
    assert_eq!(
        (prompt.test, prompt.speed, prompt.line),
        (Test::Prompt(512), 2368.8, 4)
    );
    assert_eq!(
        (generation.test, generation.depth),
        (Test::Generation(128), 4096)
    );
    assert_eq!(generation.split_mode.as_deref(), Some("tensor"));
    assert_eq!(generation.params.map(f64::round), Some(8.03e9));
    assert_eq!(found.complaints.len(), 1);
    let said = found.complaints[0].to_string();
    assert!(said.contains("line 6"), "{said}");
}

#[test]
fn csv_and_json_are_read() {
    let csv = "build_commit,model_n_params,n_ubatch,type_k,type_v,n_gpu_layers,split_mode,n_prompt,n_gen,n_depth,avg_ts,stddev_ts\n\
               \"1234\",\"8030261312\",\"512\",\"f16\",\"q8_0\",\"99\",\"layer\",\"512\",\"0\",\"0\",\"2400.5\",\"1.0\"\n\
               \"1234\",\"8030261312\",\"512\",\"f16\",\"q8_0\",\"99\",\"layer\",\"0\",\"128\",\"0\",\"140.5\",\"1.0\"\n";
    let json = r#"[
  {"model_n_params": 8030261312, "n_ubatch": 512, "type_k": "f16", "type_v": "q8_0", "n_gpu_layers": 99,
   "split_mode": "layer", "n_prompt": 512, "n_gen": 0, "n_depth": 0,
   "avg_ts": 2400.5},
  {"model_n_params": 8030261312, "n_ubatch": 512, "type_k": "f16", "type_v": "q8_0", "n_gpu_layers": 99,
   "split_mode": "layer", "n_prompt": 0, "n_gen": 128, "n_depth": 0,
   "avg_ts": 140.5}
]"#;
    let without_lines = |text: &str| -> Vec<Measurement> {
        let found = rows(text);
        assert!(found.complaints.is_empty(), "{:?}", found.complaints);
        let lines = found.rows.into_iter();
        lines.map(|r| Measurement { line: 0, ..r }).collect()
    };
    assert_eq!(without_lines(csv), without_lines(json));
    let objects: Vec<serde_json::Value> = serde_json::from_str(json).expect("JSON");
    let jsonl: Vec<String> = objects.iter().map(ToString::to_string).collect();
    assert_eq!(without_lines(csv), without_lines(&jsonl.join("\n")));
    assert_eq!(rows(json).rows[1].line, 7);
}

#[test]
fn logs_are_read() {
    let log = "\
[55123] print_info: model params     = 8.03 B
load_tensors: offloaded 33/33 layers to GPU
load_tensors:        CUDA0 model buffer size =  4437.81 MiB
load_tensors:   CPU_Mapped model buffer size =   281.81 MiB
llama_context: n_ubatch      = 512
llama_kv_cache: size =  512.00 MiB (  4096 cells,  32 layers,  1/1 seqs), K (f16):  256.00 MiB, V (q8_0):  256.00 MiB
llama_context:      CUDA0 compute buffer size =   258.50 MiB
prompt eval time =     270.00 ms /   640 tokens (    0.42 ms per token,  2370.37 tokens per second)
       eval time =    2500.00 ms /   350 tokens (    7.14 ms per token,   140.00 tokens per second)
      total time =    2770.00 ms /   990 tokens
";
    let found = rows(log);
    assert_eq!(found.rows.len(), 2);
    let row = &found.rows[1];
    assert_eq!(
        (row.test, row.depth, row.speed),
        (Test::Generation(350), 640, 140.0)
    );
    assert_eq!(
        (row.devices, row.params.map(f64::round)),
        (Some(1), Some(8.03e9))
    );
    assert_eq!(
        row.cache_types,
        [Some("f16".to_owned()), Some("q8_0".to_owned())]
    );
    assert_eq!(found.buffers.len(), 3);
}

#[test]
fn hostile_files_are_refused_with_a_cure() {
    let long = format!("{{\"n_prompt\": {}}}", "9".repeat(10_000));
    let nested = "[".repeat(100_000);
    let table = "| test | t/s |\n| ---: | ---: |\n| pp512 |\n| tg | 5 |\n| tg0 | 5 |\n| tg128 | nan |\n| tg128 | -3 |\n| tg99999999999999999999 | 1 |\n";
    let csv = "n_prompt,n_gen,avg_ts\n1\n,,\n5,0,inf\n0,0,3\n\"\"\"\n";
    let log = "eval time =\neval time = x / y\neval time = 0.0 ms / 100 tokens\n";
    for text in [
        "",
        "\u{0}\u{feff}",
        "nothing",
        "[]",
        "{}",
        "[1, 2]",
        &long,
        &nested,
        table,
        csv,
        log,
    ] {
        let found = read("bench", text);
        let complaints = found.expect_err(text);
        let first = &complaints[0];
        assert!(
            first.help.is_some() && first.code.id == "TPC0414",
            "{first:?}"
        );
        for d in &complaints[1..] {
            assert!(d.to_string().contains("line ") && d.help.is_some(), "{d:?}");
        }
    }
    let many = "| test | t/s |\n".to_owned() + &"| tg128 | 5 |\n".repeat(MAX_ROWS + 50);
    let found = rows(&many);
    assert_eq!(found.rows.len(), MAX_ROWS);
    assert_eq!(found.complaints.len() + found.further, 50);
}

#[test]
fn few_errors_make_wide_bands() {
    assert!(band_of(&[0.1; 4]) > 0.14);
    assert!(band_of(&[0.1; 8]) > 0.12);
    let mut many = vec![0.1; 40];
    many.push(5.0);
    assert!((band_of(&many) - 0.1).abs() < 1e-9);
    assert!(band_of(&[0.0; 50]) > 0.0);
}
