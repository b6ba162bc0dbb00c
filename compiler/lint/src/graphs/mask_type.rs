use tpc_ir::Code;
use tpc_ir::DType;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::GgmlOp;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0645",
        "an attention mask has the wrong type",
        "`FLASH_ATTN_EXT` takes a mask in f16, `SOFT_MAX` a mask in f16 or f32. ggml aborts with another type.",
    )
    .example("the f32 mask of `SOFT_MAX` passed on to `FLASH_ATTN_EXT`.")
    .cure("cast the mask once, before the first layer."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    for r in graph.records {
        let (operand, fine): (usize, &[DType]) = match r.op {
            GgmlOp::FlashAttnExt(_) => (3, &[DType::F16]),
            GgmlOp::SoftMax(_) => (1, &[DType::F16, DType::F32]),
            _ => continue,
        };
        let mask = r.src.get(operand).copied().flatten();
        let Some(mask) = mask.map(|m| &graph.records[m]) else {
            continue;
        };
        if fine.contains(&mask.dtype) {
            continue;
        }
        let fine: Vec<&str> = fine.iter().map(|t| t.name()).collect();
        let message = message!(
            "the mask of {} is {}: {} takes {}",
            graph.name(r),
            mask.dtype.name(),
            r.op.to_string(),
            fine.join(" or ")
        );
        let d = LINT.finding(graph.name(r), message);
        let d = d.help("cast the mask once, before the first layer");
        out.push(graph.at(r, "takes a mask of another type", d));
    }
}
