use tpc_cuda::Driver;

use super::check::{Check, Each, Quick};
use super::report::Section;
use super::{
    all_reduce, copies, driver, flags, kernels, measurements, models, peers, races, system,
};

use Each::{Device, Machine, Pair, Twin, Way};

/// A usual check of a section.
macro_rules! check {
    ($section:ident, $name:literal, $each:expr, $run:path $(, $field:ident: $value:expr)*) => {
        Check {
            $($field: $value,)*
            ..Check {
                section: Section::$section,
                name: $name,
                each: &$each,
                quick: Quick::All,
                after: &[],
                patience: 1,
                run: Box::new($run),
            }
        }
    };
}

/// The checks that copies on one device need.
const READY: &[&str] = &["driver", "devices", "allocation"];
/// The checks that copies between devices need.
const LINKED: &[&str] = &["driver", "devices", "allocation", "peer access"];
const EXCHANGED: &[&str] = &["driver", "devices", "allocation", "exchange"];
const COMPILED: &[&str] = &[
    "driver",
    "devices",
    "allocation",
    "kernel compiler",
    "exchange",
];
const DENSE: &[&str] = &[
    "driver",
    "devices",
    "allocation",
    "kernel compiler",
    "exchange",
    "dense kernels",
];
const DENSE_RIGHT: &[&str] = &[
    "driver",
    "devices",
    "allocation",
    "kernel compiler",
    "dense kernels",
    "dense logits",
];
const EXPERTS: &[&str] = &[
    "driver",
    "devices",
    "allocation",
    "kernel compiler",
    "exchange",
    "expert kernels",
];

/// The checks that kernels on one device need.
const KERNELS: &[&str] = &["driver", "devices", "allocation", "kernel compiler"];

/// The time for compiling kernels, as a multiple of the usual limit.
const COMPILING: u32 = 10;

/// Returns the checks of kernels: one per family.
fn families<D: Driver + 'static>() -> Vec<Check<D>> {
    let mut out = vec![
        check!(Kernels, "product kernels", [Device], kernels::products,
            after: KERNELS, quick: Quick::First, patience: COMPILING),
    ];
    out.extend(kernels::FAMILIES.iter().map(|family| Check {
        section: Section::Kernels,
        name: family.name,
        each: &[Device],
        quick: match family.is_quick() {
            true => Quick::First,
            false => Quick::Skip,
        },
        after: KERNELS,
        patience: COMPILING,
        run: Box::new(move |bench, on| kernels::family(family, bench, on)),
    }));
    out
}

/// Returns all checks, in order. A new check is one entry.
pub(super) fn checks<D: Driver + 'static>() -> Vec<Check<D>> {
    let mut out = vec![
        check!(System, "operating system", [Machine], system::platform),
        check!(System, "C library", [Machine], system::c_library),
        check!(System, "CPU", [Machine], system::cpu),
        check!(System, "memory", [Machine], system::memory),
        check!(System, "lock limit", [Machine], system::lock_limit),
        check!(Driver, "driver", [Machine], driver::driver),
        check!(Driver, "devices", [Machine], driver::devices, after: &["driver"]),
        check!(Driver, "device", [Device], driver::device, after: &["driver", "devices"]),
        check!(Driver, "allocation", [Device], driver::allocation, after: &["driver", "devices"]),
        check!(Driver, "kernel compiler", [Machine], driver::compiler),
        check!(Copies, "write and read", [Device], copies::write_and_read, after: READY),
        check!(Copies, "page-locked memory", [Device], copies::page_locked, after: READY),
        check!(Copies, "copy in memory", [Device], copies::within, after: READY),
        check!(Copies, "order of writes", [Device], copies::order, after: READY),
        check!(Copies, "copies during launches", [Device], races::during_launches, after: READY),
        check!(Peers, "peer access", [Way], peers::access, after: READY),
        check!(Peers, "exchange", [Way], peers::exchange, after: LINKED),
        check!(Peers, "exchange during launches", [Way], races::during_launches, after: EXCHANGED),
        check!(Peers, "flags", [Pair], flags::flags,
            after: COMPILED, quick: Quick::First, patience: COMPILING),
        check!(Models, "dense kernels", [Device, Twin, Pair], models::dense_kernels,
            after: COMPILED, quick: Quick::First, patience: COMPILING),
        check!(Models, "dense logits", [Device, Twin, Pair], models::dense_logits,
            after: DENSE, quick: Quick::First),
        check!(Models, "early launches", [Device], models::early_launches,
            after: DENSE_RIGHT, quick: Quick::First),
        check!(Models, "batches", [Device], models::batches,
            after: DENSE_RIGHT, quick: Quick::First),
        check!(Models, "expert kernels", [Device, Twin, Pair], models::expert_kernels,
            after: COMPILED, quick: Quick::Skip, patience: COMPILING),
        check!(Models, "expert logits", [Device, Twin, Pair], models::expert_logits,
            after: EXPERTS, quick: Quick::Skip),
        check!(Measurements, "all-reduce", [Twin, Pair], all_reduce::all_reduce,
            after: COMPILED, quick: Quick::First, patience: COMPILING),
        check!(Measurements, "host to device", [Device], measurements::to_device, after: READY),
        check!(Measurements, "device to host", [Device], measurements::to_host, after: READY),
        check!(Measurements, "device memory", [Device], measurements::within, after: READY),
        check!(Measurements, "launch", [Device], measurements::launch, after: READY),
        check!(Measurements, "link", [Way], measurements::link, after: EXCHANGED),
    ];
    out.extend(families());
    out
}
