use tpc_ir::{Code, Severity};

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::advice::Counsel;
use tpc_core::format::bytes;
use tpc_core::placement::spell_devices;
use tpc_diag::{Diagnostic, Message, Quantity, message};
use tpc_passes::machine::DeviceProfile;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Device,
    code: Code::error(
        "TPC0300",
        "a device's memory is too small",
        "The plan needs more memory on a device or the host than is left without the reserve (`--reserve`). The help \
         lists configurations that fit, with their speed and cost, and how many devices the unchanged options need. If \
         a llama.cpp command leaves `-c` or `-ngl` open, this is a note: llama.cpp lowers them.",
    )
    .example("`--devices 2x3070`, two cards of 8 GiB, and a model of 40 GB.")
    .cure("use one of the configurations in the help, or more devices.")
    .with_milder_severity(Severity::Note),
    check: Check::Plan(check),
};

/// A device or host with too little memory.
struct Over<'a> {
    name: &'a str,
    needs: u64,
    /// The available bytes, without the reserve.
    has: u64,
    memory: u64,
    /// The reserved bytes; may exceed the total.
    reserve: u64,
}

impl Over<'_> {
    fn lacks(&self) -> u64 {
        self.needs - self.has
    }

    /// Returns required / available memory. `tpc plan` names the place with the highest ratio.
    fn share(&self) -> f64 {
        self.needs as f64 / self.has as f64
    }
}

/// Returns the devices, the host or their shared memory with too little memory.
fn overfull_places<'a>(plan: &'a Plan<'_>) -> Vec<Over<'a>> {
    let topology = &plan.placement.topology;
    let over = |name, needs: u64, profile: &DeviceProfile| {
        let memory = profile.memory?;
        let has = (memory - profile.reserve).max(0.0) as u64;
        (needs > has).then_some(Over {
            name,
            needs,
            has,
            memory: memory as u64,
            reserve: profile.reserve as u64,
        })
    };
    let devices = plan.report.devices.iter().enumerate();
    let devices =
        devices.filter_map(|(i, d)| over(d.name.as_str(), d.total_bytes, topology.device(i)));
    let mut all: Vec<Over<'_>> = devices.collect();
    let host = &plan.report.host;
    match &plan.report.pool {
        None => all.extend(over(host.name.as_str(), host.total_bytes, &topology.host)),
        Some(pool) if pool.total_bytes > pool.usable_bytes() && all.is_empty() => all.push(Over {
            name: "the shared memory of devices and host",
            needs: pool.total_bytes,
            has: pool.usable_bytes(),
            memory: pool.capacity_bytes,
            reserve: pool.reserve_bytes,
        }),
        Some(_) => {}
    }
    all
}

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let mut all = overfull_places(plan);
    // Highest ratio first.
    all.sort_by(|a, b| b.share().total_cmp(&a.share()));
    let Some((worst, others)) = all.split_first() else {
        return;
    };
    let reserve = match worst.reserve {
        0 => Message::default(),
        n => message!(
            " ({} less {} reserved)",
            Quantity(bytes(worst.memory)),
            Quantity(bytes(n))
        ),
    };
    let names: Vec<&str> = others.iter().map(|o| o.name).collect();
    let others = match names.as_slice() {
        [] => Message::default(),
        [one] => message!("; {} also lacks memory", Quantity(one)),
        several => message!("; {} also lack memory", Quantity(several.join(", "))),
    };
    let message = message!(
        "needs {}, has {}{}: {} short{}",
        Quantity(bytes(worst.needs)),
        Quantity(bytes(worst.has)),
        reserve,
        Quantity(bytes(worst.lacks())),
        others
    );
    let help = match plan.counsel {
        Some(counsel) => advice_lines(counsel).into(),
        None => {
            "use more devices, a smaller --ctx-size, smaller cache types, or another --tensor-split"
                .into()
        }
    };
    let finding = LINT.finding(worst.name, message);
    out.push(Diagnostic {
        help: Some(help),
        ..finding
    });
}

/// Formats the results of the search, one per line.
fn advice_lines(counsel: &Counsel) -> String {
    let mut out = Vec::new();
    let how = match counsel.complete {
        true => String::new(),
        false => format!(" (the best of {} plans tried)", counsel.tried),
    };
    match (counsel.advice.as_slice(), &counsel.shortfall) {
        ([], Some(least)) => out.push(format!(
            "no tried configuration fits{how}: with {}, {} are missing, most of them on {}",
            least.options,
            bytes(least.bytes),
            least.place
        )),
        ([], None) => out.push(format!("no tried configuration fits{how}")),
        ([one], _) => out.push(format!("this fits{how}: {} ({})", one.options, one.worth())),
        (several, _) => {
            out.push(format!(
                "each of these fits{how}; options without losses first, then the fastest:"
            ));
            let lines = several
                .iter()
                .map(|a| format!("  {} ({})", a.options, a.worth()));
            out.extend(lines);
        }
    }
    if let Some(growth) = &counsel.growth {
        let devices = &growth.placement.devices;
        let alike = devices.windows(2).all(|d| d[0].card == d[1].card);
        let devices = match alike {
            true => format!("{} such devices suffice", growth.devices),
            false => format!("--devices {} suffices", spell_devices(devices)),
        };
        out.push(format!(
            "{devices} for the unchanged options (-sm {}, {:.1} t/s)",
            growth.mode.name(),
            growth.decode_tps
        ));
    }
    out.join("\n")
}
