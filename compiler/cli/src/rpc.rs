//! `tpc rpc`: serves ggml's RPC protocol as a device for llama.cpp programs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tpc_ir::DType;

use crate::args::{Defaults, PlacementArgs};
use crate::clients::{self, ANY_MEMORY};
use crate::codes;
use crate::execution::{self, ExecutionArgs};
use crate::lint::{VerdictArgs, verdicts};
use crate::output::{self, Console, Failure};
use crate::plan;
use tpc_core::placement::SplitMode;
use tpc_core::units::{Unit, quantity};
use tpc_diag::{Diagnostic, codes as common};
use tpc_engine::ExecutorKind;
use tpc_engine::rpc::{Executors, GraphDevice};
use tpc_rpc::{Device, Limits, Server, Version};

/// The default memory that computing devices report, in bytes.
const MEMORY: u64 = 8 << 30;

/// The default address, with llama.cpp's default port.
const ADDRESS: &str = "127.0.0.1:50052";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Record client graphs in this folder without running them; lint them on exit.
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,
    /// Listen address; port 0: any free port.
    #[arg(long, value_name = "ADDR:PORT", default_value = ADDRESS)]
    listen: String,
    /// Listen address without its port, as in ggml-rpc-server.
    #[arg(long, short = 'H', value_name = "ADDR", conflicts_with = "listen")]
    host: Option<String>,
    /// Listen port.
    #[arg(long, short, value_name = "PORT", conflicts_with = "listen")]
    port: Option<u16>,
    /// Allow a listen address that other machines can reach; the protocol lacks authentication.
    #[arg(long)]
    allow_remote: bool,
    /// Version of the RPC protocol: 8 for llama.cpp 0.8, 7 for llama.cpp 0.5 and 0.6.
    #[arg(long, value_name = "8|7", default_value = "8", value_parser = protocol)]
    protocol: Version,
    /// Memory that clients see, such as `80 GiB` [default: 1 TiB for --capture, else 8 GiB].
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    /// Exit when at least one graph was computed and all clients have disconnected [default: run until Ctrl-C].
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    engine: ExecutionArgs,
    #[command(flatten)]
    verdict: VerdictArgs,
    #[command(flatten)]
    placement: PlacementArgs,
}

impl Args {
    fn address(&self) -> String {
        if self.host.is_none() && self.port.is_none() {
            return self.listen.clone();
        }
        let (host, port) = ADDRESS.split_once(':').unwrap_or_default();
        let host = self.host.as_deref().unwrap_or(host);
        match self.port {
            Some(port) => format!("{host}:{port}"),
            None => format!("{host}:{port}"),
        }
    }
}

fn protocol(text: &str) -> Result<Version, Diagnostic> {
    let major = text.split('.').next().and_then(|n| n.parse().ok());
    major.and_then(Version::from_major).ok_or_else(|| {
        let message = format!("tpc does not serve version `{text}` of the RPC protocol");
        Diagnostic::new(&common::COMMAND_LINE, "--protocol", message)
            .help("give 8 for llama.cpp 0.8, or 7 for llama.cpp 0.5 and 0.6")
    })
}

fn memory(text: &str) -> Result<u64, Diagnostic> {
    let wrong = |message: String| {
        Diagnostic::new(&common::COMMAND_LINE, "--memory", message)
            .help("write bytes with a unit, such as `--memory 80GiB`")
    };
    let bytes = quantity(text, Unit::Bytes).map_err(|e| wrong(e.message))?;
    match (1.0..=ANY_MEMORY as f64 * 64.0).contains(&bytes) {
        true => Ok(bytes as u64),
        false => Err(wrong(format!("invalid memory size `{text}`"))),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if args.capture.is_none() && !args.placement.names_a_machine() {
        let message = "`tpc rpc` needs --devices (run graphs) or --capture (record graphs)";
        let d = Diagnostic::new(&common::COMMAND_LINE, "rpc", message);
        return Err(Failure::usage(d.help(
            "`--devices cpu,cpu` runs graphs on these devices; `--capture DIR` records and lints them",
        )));
    }
    if let Some(folder) = args.capture.as_ref().filter(|f| f.exists() && !f.is_dir()) {
        let e = std::io::Error::from(std::io::ErrorKind::NotADirectory);
        return Err(Failure::file(folder, &e));
    }
    let address = clients::address(&args.address())?;
    if !address.ip().is_loopback() {
        let message = format!(
            "{address} can be reached from other machines, and the RPC protocol lacks authentication"
        );
        if !args.allow_remote {
            let d = Diagnostic::new(&codes::OPEN_SERVER, "--listen", message);
            return Err(Failure::usage(d.help(
                "listen at 127.0.0.1, or add --allow-remote in a trusted network",
            )));
        }
        output::diagnostic(&Diagnostic::milder(
            &codes::OPEN_SERVER,
            "--listen",
            message,
        ));
    }
    let memory = args.memory.unwrap_or(match args.capture {
        Some(_) => ANY_MEMORY,
        None => MEMORY,
    });
    let device = match args.capture {
        Some(_) => None,
        None => Some(computing(args)?),
    };
    let server = clients::listen(address, args.protocol, Limits::new(memory))?;
    let address = server
        .address()
        .map_err(|e| Failure::write("address", &e))?;
    output::result(&format!("listening on {address}\n"))?;
    match (&args.capture, device) {
        (Some(folder), _) => capture(args, &server, folder),
        (None, Some(device)) => {
            let graphs = device.graphs();
            let device: Arc<dyn Device> = Arc::new(device);
            let pressed = clients::interrupted();
            clients::serve(&server, &device, &mut |count| {
                let gone = args.once && count.open == 0 && graphs.load(Ordering::SeqCst) > 0;
                gone || pressed.load(Ordering::SeqCst)
            });
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

fn computing(args: &Args) -> Result<GraphDevice, Failure> {
    let defaults = Defaults {
        cache: DType::F16,
        split_mode: SplitMode::Tensor,
    };
    let kind = args.engine.executor(&args.placement, ExecutorKind::Cpu);
    if kind == ExecutorKind::Reference {
        let message = "the reference executor cannot run client graphs";
        let d = Diagnostic::new(&common::UNSUPPORTED_OPTION, "--executor", message);
        return Err(Failure::usage(
            d.help("use --executor cpu, or cuda for cards"),
        ));
    }
    let placement = execution::placement(&args.placement, defaults, kind)?;
    if kind == ExecutorKind::Cuda {
        execution::on_cards(&placement)?;
    }
    let options = args
        .engine
        .executor_options(kind, placement.devices.len())?;
    let executors = Executors::new(options, &placement)?;
    let console = Console {
        progress: None,
        verbose: args.engine.verbose(),
    };
    Ok(GraphDevice::new(placement, executors, Arc::new(console)))
}

fn capture(args: &Args, server: &Server, folder: &Path) -> Result<(), Failure> {
    let captures = clients::capture(server, args.once);
    let paths = clients::write(&captures, folder)?;
    let mut plans = Vec::new();
    for path in &paths {
        // If a graph has no plan, its findings give the reason.
        plans.extend(plan::of_capture(path, &args.placement));
    }
    if args.verdict.is_text() {
        for plan in &plans {
            output::result(&plan::table(plan)?)?;
        }
    }
    let in_object = if args.verdict.is_json() {
        plans.as_slice()
    } else {
        &[]
    };
    verdicts(&paths, &args.verdict, &args.placement, in_object)
}
