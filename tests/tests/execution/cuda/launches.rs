//! Kernel launches per device and token, on headers of real models.

use std::collections::BTreeMap;

use tpc_core::pipeline::compile;
use tpc_cuda::CudaTarget;
use tpc_cuda::executor::launch_list;
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_passes::assemble;
use tpc_runtime::Options;
use tpc_tests::headers;

use crate::support::{name, placement};

/// The maximum number of launches per layer and token on one device, by model and number of devices.
const MOST: [(&str, usize, f64); 10] = [
    ("llama-3.1-8b-instruct", 1, 8.4),
    ("llama-3.1-8b-instruct", 2, 8.4),
    ("phi-4", 1, 8.3),
    ("qwen3-14b", 1, 8.3),
    ("gemma-3-27b-it", 1, 8.3),
    ("qwen3-30b-a3b", 1, 10.3),
    ("qwen3-30b-a3b", 2, 10.3),
    ("mixtral-8x7b", 1, 10.4),
    ("gpt-oss-120b", 1, 10.4),
    ("gpt-oss-120b", 2, 10.4),
];

#[test]
fn devices_launch_no_more_kernels_for_a_layer_than_they_did() {
    let mut worse = Vec::new();
    for (model, devices, most) in MOST {
        let found = headers().into_iter().find(|p| name(p).starts_with(model));
        let path = found.unwrap_or_else(|| panic!("no header of {model}"));
        let file = GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
        let compiled = compile(&file, &placement(devices, DType::F16));
        let compiled = compiled.unwrap_or_else(|d| panic!("{model}: {}", d[0]));
        let layers = compiled.model.summary.n_layer;
        let shapes = &compiled.batch_shapes()[..1];
        let program = assemble(&compiled.programs, shapes, &CudaTarget).expect("sizes");
        let kernels = launch_list(&program, Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let mut of_first: BTreeMap<String, usize> = BTreeMap::new();
        for (_, kernel) in kernels.iter().filter(|(device, _)| *device == 0) {
            *of_first.entry(kernel.clone()).or_default() += 1;
        }
        let each = of_first.values().sum::<usize>() as f64 / layers as f64;
        println!("{model} on {devices}: {each:.2} launches for a layer, of {most} at most");
        for (kernel, n) in of_first {
            println!("  {:5.2} {kernel}", n as f64 / layers as f64);
        }
        if each > most {
            worse.push(format!(
                "{model} on {devices}: {each:.2}, of {most} at most"
            ));
        }
    }
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}
