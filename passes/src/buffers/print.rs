use std::fmt::Write;

use tpc_ir::program::{Extent, Program};
use tpc_ir::{Arena, Buffer, Dim, Value};

/// Prints the arenas, buffers and values of a program. Buffers of a batch have one range per batch shape.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    for (a, arena) in program.arenas.iter().enumerate() {
        let (place, kind, bytes) = (arena.place, arena.kind.name(), arena.bytes);
        let _ = writeln!(out, "@{place} {kind}, {bytes} bytes");
        let buffers = program.buffers.iter().enumerate();
        for (b, buffer) in buffers.filter(|(_, b)| b.arena == Arena::new(a)) {
            let range = |e: &Extent| format!("{}:{}", e.offset, e.bytes);
            let ranges: Vec<String> = buffer.extents.iter().map(range).collect();
            let values: Vec<String> = values_in(program, Buffer::new(b)).collect();
            let _ = writeln!(out, "  [{}] {}", ranges.join(", "), values.join(", "));
        }
    }
    let has_no_home = |v: &Value| program.home(*v).is_none();
    let values = program.graph.values().map(|(v, _)| v);
    let values: Vec<String> = values.filter(has_no_home).map(|v| v.to_string()).collect();
    if !values.is_empty() {
        let _ = writeln!(out, "not in memory: {}", values.join(", "));
    }
    out
}

fn values_in(program: &Program, buffer: Buffer) -> impl Iterator<Item = String> {
    program.graph.values().filter_map(move |(value, _)| {
        let home = program.home(value).filter(|h| h.buffer == buffer)?;
        let op = program.graph.def_op(value).name();
        let offset = match home.layout.offset == Dim::ZERO {
            true => String::new(),
            false => format!(" at {}", home.layout.offset),
        };
        Some(format!("{value} {op}{offset}"))
    })
}
