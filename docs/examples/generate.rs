//! Continues a list of token ids on the CPU: `generate MODEL.gguf 2 1,2,3 16` adds 16 tokens on two devices.

use std::error::Error;
use std::path::Path;

use tpc_core::placement::{Placement, parse_devices};
use tpc_engine::generate::{Generator, Slot};
use tpc_engine::{ExecutorKind, ExecutorOptions, Loader, PreparedModel};
use tpc_gguf::GgufFile;
use tpc_text::{Sampler, Settings};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, devices, prompt, max_tokens] = arguments.as_slice() else {
        return Err("usage: generate MODEL.gguf DEVICES 1,2,3 MAX_TOKENS".into());
    };
    let prompt: Vec<u32> = prompt
        .split(',')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let file = GgufFile::open(Path::new(path))?;
    let placement = Placement {
        storage: ExecutorKind::Cpu.target(),
        ctx_size: Some(512),
        ..Placement::on(parse_devices(devices)?)
    };
    let model = PreparedModel::of_file(&file, &placement)?;
    let loader = Loader {
        name: Path::new(path),
        file: &file,
        model: &model,
        ctx_size: usize::MAX,
        batch: model.ubatch,
        outputs: 1,
        sequences: 1,
        executor: ExecutorOptions::new(ExecutorKind::Cpu, model.n_devices()),
    };
    let n_ctx = loader.sequence_ctx_size();
    let mut session = loader.load(&())?;
    let sampler = Sampler::new(Settings::greedy(), model.n_vocab)?;
    let mut slot = Slot::new(0, sampler, Vec::new());
    slot.max_tokens = max_tokens.parse()?;
    slot.begin(&prompt);
    let mut generator = Generator::new(&mut session, n_ctx, model.ubatch);
    generator.run(std::slice::from_mut(&mut slot), |_, _| {
        Ok::<(), tpc_engine::Error>(())
    })?;
    let ids: Vec<String> = slot.sink.iter().map(u32::to_string).collect();
    println!("{}", ids.join(","));
    Ok(())
}
