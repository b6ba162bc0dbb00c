//! Two engines, compared on each op of a graph: servers of ggml's RPC protocol, or a server and the reference executor.

mod server;
mod text;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Args, Output};
use crate::codes;
use crate::output::{self, Failure, Format};
use crate::progress::Progress;
use crate::source::read_records;
use server::RpcServer;
use tpc_diag::{Diagnostic, FormatVersion, codes as common, message};
use tpc_ggml::capture::Record;
use tpc_numeric::bisect::{
    BisectError, Engine, EngineComparison, Reference, Verdict, compare_engines,
};

/// The name of the reference executor in reports.
const REFERENCE: &str = "tpc's reference executor";

/// The comparison of two engines as JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EngineReport")]
pub(crate) struct Report<'a> {
    /// The version of the format.
    tpc: FormatVersion,
    /// The verdict.
    verdict: Verdict,
    /// The file of the graph.
    graph: &'a str,
    /// The engines: an address, or the reference executor.
    engines: [&'a str; 2],
    #[serde(flatten)]
    found: &'a EngineComparison,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if args.rpc.len() > 2 {
        let n = args.rpc.len();
        let message = message!("{} servers, but bisect compares two engines", n);
        let d = Diagnostic::new(&common::COMMAND_LINE, "--rpc", message);
        return Err(Failure::usage(d.help("give --rpc once or twice")));
    }
    let path = args.first.display().to_string();
    let records = read_records(&args.first)?;
    let mut servers = Vec::new();
    for text in &args.rpc {
        servers.push(RpcServer::connect(text)?);
    }
    let mut names: Vec<String> = servers.iter().map(|s| s.name().to_owned()).collect();
    let mut reference = Reference;
    let mut engines: Vec<&mut dyn Engine> = Vec::new();
    if servers.len() < 2 {
        names.insert(0, REFERENCE.to_owned());
        engines.push(&mut reference);
    }
    engines.extend(servers.iter_mut().map(|s| s as &mut dyn Engine));
    let [a, b] = engines.as_mut_slice() else {
        return Ok(());
    };
    let found = compare(args, &records, [*a, *b])?;
    let engines = [0, 1].map(|i| names[i].as_str());
    match args.format {
        Format::Text => output::result(&text::report(&found, &path, engines, args.verbose))?,
        Format::Json => output::json(&Output::Engines(Report {
            tpc: FormatVersion,
            verdict: found.verdict(),
            graph: &path,
            engines,
            found: &found,
        }))?,
    }
    match differ(&found, &path, engines) {
        None => Ok(()),
        Some(d) => Err(Failure::findings(vec![d])),
    }
}

fn compare(
    args: &Args,
    records: &[Record],
    engines: [&mut dyn Engine; 2],
) -> Result<EngineComparison, Failure> {
    let _progress = Progress::start("comparing the engines");
    compare_engines(records, engines, args.tolerance).map_err(|e| match e {
        BisectError::Capture(_, e) => Failure::usage(Diagnostic {
            entity: args.first.display().to_string().into(),
            ..Diagnostic::from(e)
        }),
        BisectError::Run(why) => {
            let message = message!("the graph's ops cannot run: {}", why);
            let entity = args.first.display().to_string();
            Failure::usage(Diagnostic::new(&codes::NOT_COMPARED, entity, message))
        }
    })
}

/// Returns the diagnostic of the first difference, or of ops that did not run.
fn differ(found: &EngineComparison, path: &str, engines: [&str; 2]) -> Option<Diagnostic> {
    if let Some(first) = found.differences.first() {
        let message = message!("{}: {}", path, text::verdict(first, engines));
        let d = Diagnostic::new(&codes::ENGINES_DIFFER, first.op.tensor.clone(), message);
        let d = d.help(codes::ENGINES_DIFFER.cure).line(first.op.line);
        return Some(d);
    }
    let unrun: usize = found.kinds.iter().map(|k| k.unrun.len()).sum();
    let message = message!("{}: {} distinct ops did not run", path, unrun);
    let d = Diagnostic::new(&codes::NOT_COMPARED, path.to_owned(), message);
    (unrun > 0)
        .then(|| d.help("capture a smaller model of the architecture, or compare two servers"))
}
