//! Draft models that compute only beside another model, because they read its hidden states or caches.

/// The architectures, with the part of the other model that they read.
const DRAFTERS: [(&str, &str); 3] = [
    (
        "eagle3",
        "the residual stream after three layers, and its embedding and output where the file has none",
    ),
    (
        "dflash",
        "the residual stream after some layers, its embedding and its output",
    ),
    (
        "gemma4-assistant",
        "its last hidden state, its embedding and the KV caches of its last layers",
    ),
];

/// Returns the part of another model that a draft model of this architecture reads; `None` for other architectures.
pub fn read_by_draft(arch: &str) -> Option<&'static str> {
    let known = DRAFTERS.iter().find(|(name, _)| *name == arch);
    known.map(|(_, reads)| *reads)
}
