use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::DeviceKind;
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0810",
        "one physical device is named several times",
        "`--devices` names a device more than once. The plan counts its memory and speed each time, although they are \
         shared. Use this only for tests.",
    )
    .example("`--devices cuda:0,cuda:0`.")
    .cure("name different devices; in a test, ignore this."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let devices = &plan.placement.devices;
    let mut kinds: Vec<(DeviceKind, usize)> = Vec::new();
    for d in devices
        .iter()
        .filter(|d| matches!(d.kind, DeviceKind::Cuda(_)))
    {
        match kinds.iter_mut().find(|(k, _)| *k == d.kind) {
            Some((_, n)) => *n += 1,
            None => kinds.push((d.kind, 1)),
        }
    }
    for (kind, n) in kinds {
        if let (DeviceKind::Cuda(number), 2..) = (kind, n) {
            let message = message!(
                "cuda:{} is {} of the {} devices: its memory and speed count {} times",
                number,
                n,
                devices.len(),
                n
            );
            let note = LINT.finding("--devices", message);
            out.push(note.help("name different devices; in a test, ignore this"));
        }
    }
}
