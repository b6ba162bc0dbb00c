use std::fmt::Write as _;

use tpc_core::report::{BitsReport, explain_difference};
use tpc_ir::Graph;
use tpc_ir::program::Company;
use tpc_passes::bits::find_differences;

/// Formats the conditions under which results keep their bits, and every sum that may differ from one device.
pub(super) fn text(programs: &Graph, company: Company) -> String {
    let report = BitsReport::of_programs(programs, company);
    let mut out = format!("bits: {}\n\n", report.brief());
    let widths = match report.widths {
        None => "any batch".to_owned(),
        Some(n) => format!("batches of up to {n} tokens"),
    };
    let _ = writeln!(
        out,
        "  a token has the bits of a batch of its own in {widths}"
    );
    out.push_str(match report.neighbours {
        true => "  other sequences change no bits if each has its own part of the caches\n",
        false => "  other sequences may change bits\n",
    });
    out.push_str("  a saved prefix has the bits of a computed one, except after a context shift\n");
    let found = find_differences(programs, company);
    if !found.is_empty() {
        out.push_str("\nsums that may differ from one device\n");
    }
    for d in &found {
        let (reason, words) = explain_difference(d.cause);
        let value = &programs.value(d.value).name;
        let op = programs.inst(d.inst).op.name();
        let of = d
            .tensor
            .as_deref()
            .map_or(String::new(), |t| format!(" of {t}"));
        let _ = writeln!(out, "  {value}: {op}{of}: {reason}, {words}");
    }
    out
}
