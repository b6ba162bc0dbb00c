//! The catalogue of diagnostic codes.

use tpc_diag::Code;

/// Every code of the compiler and of the runtime, in order. The compiler's libraries do not know the runtime, so they
/// meet here.
pub fn codes() -> Vec<&'static Code> {
    let mut out: Vec<&Code> = tpc_lint::lints().map(|l| &l.code).collect();
    for table in [
        tpc_diag::codes::CODES,
        tpc_fetch::CODES,
        tpc_gguf::CODES,
        tpc_models::CODES,
        tpc_ggml::capture::CODES,
        tpc_ggml::meta::CODES,
        tpc_ir::text::CODES,
        tpc_ir::verify::CODES,
        tpc_runtime::CODES,
        super::codes::CODES,
    ] {
        out.extend(table);
    }
    out.sort();
    out
}
