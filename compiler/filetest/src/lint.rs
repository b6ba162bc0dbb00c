use std::collections::BTreeMap;

use tpc_core::pipeline::{CompiledModel, compile, compile_capture};
use tpc_core::placement::{Placement, SplitMode};
use tpc_diag::Diagnostic;
use tpc_gguf::GgufFile;
use tpc_ir::text::{self, Entity, ParsedGraph};
use tpc_ir::{DType, Value, ValueData};
use tpc_lint::{File, graph_of, lint_file, plan_report};
use tpc_synth::{Model, Spec};

use crate::case::Case;
use crate::expectation::{Failures, Reported};
use crate::frontend::Frontend;
use crate::outcome::Outcome;
use crate::planning::captured;

fn placement(case: &Case, mode: SplitMode, frontend: &Frontend) -> Result<Placement, String> {
    (frontend.placement)(&case.options, DType::F16, mode)
        .map_err(|d| format!("`; options`: {}", d[0]))
}

fn reported(line: usize, d: &Diagnostic) -> Reported {
    let help = d.help.as_ref().map(ToString::to_string).unwrap_or_default();
    Reported {
        line,
        code: d.code.to_string(),
        message: format!("{d} {help}"),
    }
}

/// Returns the findings about a graph and its plan, by line, and the lines with an unexpected sharding.
pub(crate) fn of_graph(case: &Case, parsed: &ParsedGraph, frontend: &Frontend) -> Outcome {
    let planned = placement(case, SplitMode::Tensor, frontend).and_then(|placement| {
        compile_capture(&captured(parsed)?, &placement)
            .map(|compiled| (placement, compiled))
            .map_err(|d| format!("no plan: {}: {}", d[0].code, d[0]))
    });
    let (placement, compiled) = match planned {
        Ok(p) => p,
        Err(e) => return Outcome::output(Err(e)),
    };
    let line_of = |name: &str| {
        let named = |&(_, v): &(Value, &ValueData)| !name.is_empty() && v.name == name;
        let (v, _) = parsed.graph.values().find(named)?;
        Some(parsed.spans.get(Entity::Value(v))?.line(&case.text))
    };
    let found = plan_report("", &placement, &compiled).diagnostics;
    let found = found
        .iter()
        .map(|d| reported(line_of(&d.entity.to_string()).unwrap_or(0), d));
    Outcome {
        reported: found.collect(),
        failures: shardings(case, &compiled, &line_of),
        output: None,
    }
}

fn shardings(
    case: &Case,
    compiled: &CompiledModel,
    line_of: &dyn Fn(&str) -> Option<usize>,
) -> Failures {
    // A value of the text keeps its name; copies and sums of it are transfers.
    let printed = text::print(&compiled.sharded);
    let mut of_line: BTreeMap<usize, String> = BTreeMap::new();
    for (v, data) in compiled.sharded.values() {
        let span = printed.spans.get(Entity::Value(v)).unwrap_or_default();
        let place = printed.text[span.range()].rsplit_once('@');
        let sharding = place.and_then(|(_, p)| p.split_once(' '));
        if let (Some(line), false) = (
            line_of(&data.name),
            compiled.sharded.def_op(v).is_transfer(),
        ) {
            of_line.insert(line, sharding.map_or("", |(_, s)| s).to_owned());
        }
    }
    let wrong = case.shardings.iter().filter_map(|(line, expected)| {
        let found = of_line.get(line).map_or("nothing", String::as_str);
        (found != expected).then(|| format!("{line}: divided as `{found}`"))
    });
    wrong.collect()
}

pub(crate) fn of_model(case: &Case, spec: &str, frontend: &Frontend) -> Outcome {
    match findings(case, spec, frontend) {
        Ok(found) => Outcome::reported(found.iter().map(|d| reported(0, d)).collect()),
        Err(e) => Outcome::output(Err(e)),
    }
}

fn findings(case: &Case, spec: &str, frontend: &Frontend) -> Result<Vec<Diagnostic>, String> {
    let spec = Spec::parse(spec).map_err(|d| format!("`; model`: {d}"))?;
    let none = |_: DType, _: &[f32], _: &mut Vec<u8>| Err("only headers are written".to_owned());
    let model = Model::new(spec, &none).map_err(|d| format!("`; model`: {d}"))?;
    let path = std::env::temp_dir().join(format!(
        "tpc-filetest-{}-{:x}.gguf",
        std::process::id(),
        case.text.len()
    ));
    let written = std::fs::File::create(&path).map_err(|e| e.to_string())?;
    model.write(written).map_err(|d| d.to_string())?;
    let file = GgufFile::open(&path).map_err(|e| e.to_string());
    let _ = std::fs::remove_file(&path);
    let file = file?;
    let placement = placement(case, SplitMode::Auto, frontend)?;
    let lowered = graph_of(&file);
    let mut out = lint_file(&File {
        file: &file,
        model: lowered.as_ref(),
    });
    match compile(&file, &placement) {
        Ok(compiled) => out.extend(plan_report("", &placement, &compiled).diagnostics),
        Err(errors) => out.extend(errors),
    }
    Ok(out)
}
