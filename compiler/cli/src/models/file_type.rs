//! llama.cpp's names of file types.

use std::collections::BTreeMap;

use tpc_gguf::GgufFile;

/// Names by `general.file_type`; an empty name is a removed type.
const NAMES: [&str; 43] = [
    "F32", "F16", "Q4_0", "Q4_1", "", "", "", "Q8_0", "Q5_0", "Q5_1", "Q2_K", "Q3_K_S", "Q3_K_M",
    "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "IQ2_XXS", "IQ2_XS", "Q2_K_S",
    "IQ3_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ3_M", "IQ2_S", "IQ2_M", "IQ4_XS", "IQ1_M",
    "BF16", "", "", "", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q1_0", "Q2_0", "F8_E4M3",
];

/// Returns the file's type: its own, or else the type of most elements.
pub(super) fn of(file: &GgufFile) -> Option<String> {
    let header = file.header();
    let own = header
        .metadata()
        .get_u32("general.file_type")
        .ok()
        .flatten();
    let own = own
        .and_then(|n| NAMES.get(usize::try_from(n).ok()?))
        .filter(|n| !n.is_empty());
    if let Some(name) = own {
        return Some((*name).to_owned());
    }
    let mut by_type: BTreeMap<&str, u64> = BTreeMap::new();
    for t in header.tensors() {
        let sum = by_type.entry(t.dtype.name()).or_default();
        *sum = sum.saturating_add(t.elements());
    }
    let most = by_type.into_iter().max_by_key(|(_, n)| *n);
    most.map(|(name, _)| name.to_ascii_uppercase())
}
