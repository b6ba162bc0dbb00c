//! Passes that need a target: layouts, launches, buffers and queues.

use tpc_ir::program::{BatchShape, Program, Target, verify};
use tpc_ir::text::ParsedGraph;
use tpc_ir::{Bindings, Symbol, Verified, stage};
use tpc_passes::layout::{self, Layouts};
use tpc_passes::{assemble, buffers, cover, schedule};

use crate::case::Case;
use crate::frontend::Frontend;

fn target(case: &Case, frontend: &Frontend) -> Result<&'static dyn Target, String> {
    let name = case.target.as_deref().unwrap_or("file");
    (frontend.target)(name).ok_or_else(|| format!("`; target`: unknown target `{name}`"))
}

fn shapes(case: &Case) -> Result<Vec<BatchShape>, String> {
    let shape = |words: &String| {
        let mut most = Bindings::default();
        for word in words.split_whitespace() {
            let (name, size) = word.split_once('=').unwrap_or((word, ""));
            let symbol = Symbol::from_name(name);
            let (Some(symbol), Ok(size)) = (symbol, size.parse()) else {
                return Err(format!("`; shape`: `{word}` is not SYMBOL=SIZE"));
            };
            most = most.with(symbol, size);
        }
        Ok(BatchShape { most })
    };
    match case.shapes.is_empty() {
        true => shape(&String::new()).map(|s| vec![s]),
        false => case.shapes.iter().map(shape).collect(),
    }
}

fn programs(parsed: &ParsedGraph) -> Result<Verified<stage::Programs>, String> {
    Verified::new(parsed.graph.clone()).map_err(|v| format!("the programs are not valid: {v}"))
}

pub(crate) fn layout(
    case: &Case,
    parsed: &ParsedGraph,
    frontend: &Frontend,
) -> Result<String, String> {
    let (graph, target) = (programs(parsed)?, target(case, frontend)?);
    let layouts = Layouts::of(&graph, target).ok_or("sizes overflow")?;
    Ok(layout::print(&graph, &layouts))
}

pub(crate) fn cover(
    case: &Case,
    parsed: &ParsedGraph,
    frontend: &Frontend,
) -> Result<String, String> {
    let (graph, target) = (programs(parsed)?, target(case, frontend)?);
    let layouts = Layouts::of(&graph, target).ok_or("sizes overflow")?;
    let launches = cover::cover(&graph, &layouts, target);
    Ok(cover::print(&graph, &launches))
}

fn assemble_program(
    case: &Case,
    parsed: &ParsedGraph,
    frontend: &Frontend,
) -> Result<Program, String> {
    let (graph, target) = (programs(parsed)?, target(case, frontend)?);
    let program = assemble(&graph, &shapes(case)?, target).map_err(|e| e.to_string())?;
    match verify(&program) {
        Ok(()) => Ok(program),
        Err(errors) => Err(format!("the assembled program is not valid: {}", errors[0])),
    }
}

pub(crate) fn buffers(
    case: &Case,
    parsed: &ParsedGraph,
    frontend: &Frontend,
) -> Result<String, String> {
    Ok(buffers::print(&assemble_program(case, parsed, frontend)?))
}

pub(crate) fn schedule(
    case: &Case,
    parsed: &ParsedGraph,
    frontend: &Frontend,
) -> Result<String, String> {
    Ok(schedule::print(&assemble_program(case, parsed, frontend)?))
}
