//! Compiles a model for the CPU into an artefact: `compile MODEL.gguf 2 OUT.tpc`.

use std::error::Error;
use std::path::Path;

use tpc_artefact::Artefact;
use tpc_core::placement::{Placement, parse_devices};
use tpc_engine::ExecutorKind;
use tpc_engine::artefact::{CPU, Content, manifest};
use tpc_gguf::GgufFile;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, devices, output] = arguments.as_slice() else {
        return Err("usage: compile MODEL.gguf DEVICES OUT.tpc".into());
    };
    let file = GgufFile::open(Path::new(model))?;
    let target = ExecutorKind::Cpu.target();
    let placement = Placement {
        storage: target,
        ..Placement::on(parse_devices(devices)?)
    };
    let compiled = tpc_engine::plan(&file, &placement)?;
    let program = tpc_engine::program(&compiled, &placement, target)?;
    let content = Content {
        executor: CPU,
        program: &program,
        kernels: false,
    };
    let manifest = manifest(&file, &compiled, &placement, content, None)?;
    let artefact = Artefact::new(manifest, program).map_err(|e| e.diagnostic(output))?;
    let bytes = artefact.to_bytes().map_err(|e| e.diagnostic(output))?;
    std::fs::write(output, &bytes)?;
    println!("{output}: {} bytes", bytes.len());
    Ok(())
}
