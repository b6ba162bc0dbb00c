//! Plans a model for some devices and prints the plan: `plan MODEL.gguf 2` or `plan MODEL.gguf 2x3090`.

use std::error::Error;
use std::path::Path;

use tpc_core::placement::{DeviceList, Machine, Placement};
use tpc_core::report::{Detail, PlanReport, render};
use tpc_gguf::GgufFile;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, devices] = arguments.as_slice() else {
        return Err("usage: plan MODEL.gguf DEVICES".into());
    };
    let file = GgufFile::open_unfinished(Path::new(model))?;
    let machine = Machine::of(&DeviceList::parse(devices)?)?;
    let placement = Placement {
        topology: machine.topology,
        ..Placement::on(machine.devices)
    };
    let compiled = tpc_engine::plan(&file, &placement)?;
    let report = PlanReport::new(model, &placement, &compiled);
    print!("{}", render(&report, 100, Detail::Brief));
    Ok(())
}
