use tpc_ir::Code;
use tpc_ir::DType;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::capture::Record;
use tpc_ggml::op::{GgmlOp, OpKind, Precision};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0646",
        "attention may be summed in f16",
        "An attention op, or a product of queries with half-precision keys, has ggml's default precision instead of \
         f32. GPU kernels may sum in f16, which overflows for some models and differs between back ends.",
    )
    .example("`ggml_flash_attn_ext` without `ggml_flash_attn_ext_set_prec(…, GGML_PREC_F32)`.")
    .cure("set the precision to `GGML_PREC_F32`."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let mut tell = |r: &Record, call: &str| {
        let message = message!(
            "{} ({}) may be summed in f16",
            r.op.to_string(),
            graph.name(r)
        );
        let d = LINT.finding(graph.name(r), message);
        let d = d.help(message!("{}(…, GGML_PREC_F32)", call));
        out.push(graph.at(r, "has the default precision", d));
    };
    let written = graph.written_memory();
    for r in graph.records {
        if let GgmlOp::FlashAttnExt(p) = &r.op
            && p.precision != Precision::F32
        {
            tell(r, "ggml_flash_attn_ext_set_prec");
        }
        if !r.is(OpKind::SoftMax) {
            continue;
        }
        // Follow scales and added masks back to the logits.
        let Some(logits) = graph.origin_of(r, &[OpKind::Scale, OpKind::Add]) else {
            continue;
        };
        let keys = logits
            .src
            .first()
            .copied()
            .flatten()
            .map(|s| &graph.records[s]);
        let coarse = keys.is_some_and(|k| k.dtype != DType::F32 && written.contains(&k.root));
        if let GgmlOp::MulMat(p) = &logits.op
            && coarse
            && p.precision != Precision::F32
        {
            tell(logits, "ggml_mul_mat_set_prec");
        }
    }
}
