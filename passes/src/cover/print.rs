use std::fmt::Write;

use tpc_ir::program::{LaunchData, Work};
use tpc_ir::{Graph, Inst, Launch};

/// Prints each launch with its places and instructions, named by their first results.
pub fn print(graph: &Graph, launches: &[LaunchData]) -> String {
    let mut out = String::new();
    for (i, launch) in launches.iter().enumerate() {
        let places: Vec<String> = launch.places.iter().map(|p| format!("@{p}")).collect();
        let (name, kernel, places) = (Launch::new(i), &launch.kernel, places.join(", "));
        let _ = writeln!(out, "{name} {kernel} {places} = {}", work(graph, launch));
    }
    out
}

pub(crate) fn work(graph: &Graph, launch: &LaunchData) -> String {
    let result = |i: &Inst| graph.inst(*i).results[0].to_string();
    match &launch.work {
        Work::Store(output) => format!("output {output}"),
        Work::Compute(_) | Work::Transfer(_) => {
            let results: Vec<String> = launch.covered_insts().iter().map(result).collect();
            results.join(", ")
        }
    }
}
