use crate::doctor::{LIMIT, Machine, Printer};
use crate::output::{Failure, Format};
use tpc_engine::doctor::{Checked, Options, Report, Section};

/// Runs the checks of the driver and the measurements. Prints each of them as it ends, if the format is text.
pub(super) fn measure(machine: Machine, format: Format) -> Result<Report, Failure> {
    let options = Options {
        quick: false,
        limit: LIMIT,
        seed: 0,
        sections: &[Section::Driver, Section::Measurements],
    };
    let mut printer = Printer::new(format);
    let mut observe = |checked: &Checked| printer.print(checked);
    let report = machine.check(options, &mut observe);
    printer.written?;
    Ok(report)
}
