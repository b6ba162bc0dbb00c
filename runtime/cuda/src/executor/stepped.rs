//! Runs launches one after another, and dumps the launch that fails.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tpc_ir::program::Program;
use tpc_runtime::{ExecError, Frame};

use super::device_view::DeviceView;
use super::launch_record::{launch_record, reporting_run};
use super::launches::Launches;
use super::memory::{Faults, IndexFault, error};
use super::phase_graph::{KernelPosition, Step};
use super::snapshot::{ExecutorMemory, Snapshot};
use crate::driver::{DeviceInfo, Driver};
use crate::dump::{DeviceRecord, DumpHeader, KernelRecord, LaunchDump, hex};
use crate::kernels::{InstanceRecord, Kernel};
use crate::nvrtc::target_for;

/// The parts of the executor that a launch uses.
pub(super) struct Stepper<'a> {
    pub(super) memory: ExecutorMemory<'a>,
    pub(super) frame: &'a Frame<DeviceView>,
    pub(super) faults: &'a Faults,
    /// The folder of dumps.
    pub(super) folder: Option<&'a Path>,
    /// The batch shape.
    pub(super) shape: usize,
}

impl Stepper<'_> {
    /// Runs the steps. Each error names its launch.
    pub(super) fn run(&self, steps: &[Step], driver: &mut impl Driver) -> Result<(), ExecError> {
        for step in steps {
            match step.kernel {
                Some(position) => self.kernel(step, position, driver)?,
                None => {
                    driver.launch(step.graph).map_err(error)?;
                    driver.synchronize().map_err(error)?;
                }
            }
        }
        Ok(())
    }

    fn kernel(
        &self,
        step: &Step,
        at: KernelPosition,
        driver: &mut impl Driver,
    ) -> Result<(), ExecError> {
        let run = self.memory.launches.kernel_run(at);
        let run = run.and_then(|run| Some((run, run.kernels[self.shape].as_ref()?)));
        let Some((run, kernel)) = run else {
            return Err(ExecError::Malformed {
                what: format!("{} does not run a kernel", at.launch),
            });
        };
        let program = self.memory.program;
        let info = driver.devices().get(at.device).cloned();
        let saved = match self.folder {
            Some(_) => self.memory.snapshot(at.device, (run, kernel), driver),
            None => Ok(Snapshot::default()),
        };
        let named = |e: ExecError, saved: Option<Snapshot>| {
            let names = (at.launch, at.device);
            let launches = self.memory.launches;
            let launch = launch_record(program, launches, self.frame, names, (run, self.shape));
            let name = launch.to_string();
            let Some((folder, saved)) = self.folder.zip(saved) else {
                return e.at(|| name);
            };
            let header = DumpHeader {
                producer: concat!("tpc ", env!("CARGO_PKG_VERSION")).to_owned(),
                fault: e.to_string(),
                launch,
                device: device(info.as_ref()),
                kernel: kernel_record(kernel),
                tensors: saved.tensors,
                regions: saved.regions,
            };
            let dump = LaunchDump {
                header,
                source: kernel.instance.single_kernel_source().text,
                data: saved.data,
            };
            match write(folder, &dump) {
                Ok(path) => {
                    let path = quoted(&path);
                    e.at(|| format!("{name}, which `tpc replay {path}` repeats alone"))
                }
                Err(cause) => e.at(|| format!("{name}, whose dump cannot be written ({cause})")),
            }
        };
        let saved = saved.map_err(|e| named(error(e), None))?;
        let ran = driver
            .launch(step.graph)
            .and_then(|()| driver.synchronize());
        if let Err(e) = ran {
            return Err(named(error(e), Some(saved)));
        }
        if kernel.instance.reports_faults()
            && let Some(fault) = self.faults.take(at.device, driver)?
        {
            return Err(named(fault.error(program), Some(saved)));
        }
        Ok(())
    }
}

fn device(info: Option<&DeviceInfo>) -> DeviceRecord {
    let capability = info.map_or((0, 0), |i| i.capability);
    DeviceRecord {
        name: info.map_or_else(String::new, |i| i.name.clone()),
        capability,
        target: target_for(capability).unwrap_or("unknown").to_owned(),
        multiprocessors: info.map_or(0, |i| i.multiprocessors),
    }
}

fn kernel_record(kernel: &Kernel) -> KernelRecord {
    KernelRecord {
        entry: kernel.instance.entry(),
        instance: InstanceRecord::new(&kernel.instance),
        grid: kernel.geometry.grid,
        threads: kernel.geometry.threads,
        shared_bytes: kernel.geometry.shared_bytes,
        params: hex(&kernel.params),
        weights: kernel.weights.clone(),
    }
}

/// Writes a dump completely or not at all.
fn write(folder: &Path, dump: &LaunchDump) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("launch-{}.tpcdump", dump.header.launch.number));
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written = fs::File::create(&part).and_then(|file| {
        let mut out = io::BufWriter::new(file);
        dump.write(&mut out)?;
        out.flush()
    });
    let written = written.and_then(|()| fs::rename(&part, &path));
    written.inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })?;
    Ok(path)
}

/// Returns a path as a word of a shell.
fn quoted(path: &Path) -> String {
    let word = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@".contains(c);
    match word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns the error of an index out of range, after all launches of a phase.
pub(super) fn index_error(
    (program, frame): (&Program, &Frame<DeviceView>),
    launches: &Launches,
    (fault, device, shape): (IndexFault, usize, usize),
) -> ExecError {
    let e = fault.error(program);
    match reporting_run(launches, fault.launch, device, shape) {
        Some(run) => e.at(|| {
            let names = (fault.launch, device);
            let launch = launch_record(program, launches, frame, names, (run, shape));
            format!("{launch}, which `--dump-on-fault DIR` saves for replay")
        }),
        None => e,
    }
}
