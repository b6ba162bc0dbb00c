//! Lists of all diagnostic codes, of all commands that print JSON, and of all arguments that name files.

use std::any::TypeId;
use std::path::PathBuf;

use clap::CommandFactory;
use tpc_diag::Code;

/// Returns every code, in order.
pub fn codes() -> Vec<&'static Code> {
    let mut out: Vec<&Code> = tpc_lint::lints().map(|l| &l.code).collect();
    for table in [
        tpc_diag::codes::CODES,
        tpc_fetch::CODES,
        tpc_store::CODES,
        tpc_gguf::CODES,
        tpc_models::CODES,
        tpc_ggml::capture::CODES,
        tpc_ggml::meta::CODES,
        tpc_ir::text::CODES,
        tpc_ir::verify::CODES,
        tpc_ir::program::verify::CODES,
        tpc_runtime::CODES,
        tpc_cuda::CODES,
        tpc_text::CODES,
        tpc_artefact::CODES,
        tpc_rpc::CODES,
        tpc_engine::CODES,
        tpc_grammar::CODES,
        tpc_serve::CODES,
        super::codes::CODES,
    ] {
        out.extend(table);
    }
    out.sort();
    out
}

/// Returns the commands that have an option with a value `json`.
pub fn json_commands() -> Vec<String> {
    let prints_json = |argument: &clap::Arg| {
        let values = argument.get_possible_values();
        values.iter().any(|v| v.get_name().starts_with("json"))
    };
    let command = super::Cli::command();
    let printing = command.get_subcommands();
    let printing = printing.filter(|c| c.get_arguments().any(prints_json));
    printing.map(|c| c.get_name().to_owned()).collect()
}

/// Returns every argument that names a file, as (subcommand, argument).
pub fn file_arguments() -> Vec<(String, String)> {
    const NAMES: [&str; 8] = [
        "FILE", "MODEL", "CAPTURE", "URL", ".json", ".ron", ".toml", "PATH",
    ];
    let mut out = Vec::new();
    for command in super::Cli::command().get_subcommands() {
        for argument in command.get_arguments() {
            let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
            let names = argument.get_value_names().unwrap_or_default();
            let named = names
                .iter()
                .any(|n| NAMES.iter().any(|part| n.contains(part)));
            if argument.get_action().takes_values() && (is_path || named) {
                out.push((command.get_name().to_owned(), argument.get_id().to_string()));
            }
        }
    }
    out
}
