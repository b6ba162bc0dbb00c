use std::collections::BTreeMap;

use tpc_ir::Code;
use tpc_ir::DType;

use super::{Check, EntityKind, File, Lint};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0617",
        "general.file_type does not match the tensors",
        "`general.file_type` names a type that no matrix of the file has, so tools show the wrong type.",
    )
    .example("a file of q8_0 tensors that is labelled mostly q4_k.")
    .cure("write the number of the most common type by bytes."),
    check: Check::File(check),
};

/// `general.file_type` in llama.cpp's numbering, except mixtures without a dominant type.
const NAMED: [(u64, DType); 24] = [
    (0, DType::F32),
    (1, DType::F16),
    (2, DType::Q4_0),
    (3, DType::Q4_1),
    (7, DType::Q8_0),
    (8, DType::Q5_0),
    (9, DType::Q5_1),
    (10, DType::Q2K),
    (11, DType::Q3K),
    (12, DType::Q3K),
    (13, DType::Q3K),
    (14, DType::Q4K),
    (15, DType::Q4K),
    (16, DType::Q5K),
    (17, DType::Q5K),
    (18, DType::Q6K),
    (21, DType::Q2K),
    (25, DType::Iq4Nl),
    (30, DType::Iq4Xs),
    (32, DType::Bf16),
    (36, DType::Tq1_0),
    (37, DType::Tq2_0),
    (38, DType::Mxfp4),
    (42, DType::F8E4M3),
];

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    const KEY: &str = "general.file_type";
    let number = file.count(KEY);
    let Some((number, named)) = NAMED.iter().find(|(n, _)| Some(*n) == number) else {
        return;
    };
    let mut held: BTreeMap<DType, u64> = BTreeMap::new();
    for t in file.header().tensors().iter().filter(|t| t.n_dims > 1) {
        *held.entry(t.dtype).or_default() += t.bytes;
    }
    let most = held.iter().max_by_key(|(_, n)| **n);
    let Some((most, size)) = most.filter(|_| !held.contains_key(named)) else {
        return;
    };
    let message = message!(
        "{} is {} ({}), a type that no matrix has; most bytes ({}) are {}",
        KEY,
        number,
        named.name(),
        Quantity(bytes(*size)),
        most.name()
    );
    let help = "write the number of the most common type by bytes";
    out.push(LINT.finding(KEY, message).help(help));
}
