//! Options that replace others, for commands that compare settings.

use super::PlacementArgs;
use crate::output::Failure;

fn one<T: Clone>(given: &Option<T>, own: &Option<T>) -> Option<T> {
    given.clone().or_else(|| own.clone())
}

fn all<T: Clone>(given: &[T], own: &[T]) -> Vec<T> {
    match given.is_empty() {
        true => own.to_vec(),
        false => given.to_vec(),
    }
}

/// Returns the given value unless it is the default.
fn unusual<T: Clone + PartialEq>(given: &T, own: &T, usual: &T) -> T {
    match given == usual {
        true => own.clone(),
        false => given.clone(),
    }
}

impl PlacementArgs {
    /// Returns these options, with the options in `words` in their place.
    ///
    /// # Errors
    /// Returns TPC0400 if `words` are not placement options.
    pub(crate) fn with(&self, words: &[String]) -> Result<PlacementArgs, Failure> {
        let (given, usual) = (PlacementArgs::read(words)?, PlacementArgs::read(&[])?);
        Ok(PlacementArgs {
            devices: all(&given.devices, &self.devices),
            topology: one(&given.topology, &self.topology),
            link: one(&given.link, &self.link),
            reserve: one(&given.reserve, &self.reserve),
            host_memory: one(&given.host_memory, &self.host_memory),
            rpc: one(&given.rpc, &self.rpc),
            split_mode: one(&given.split_mode, &self.split_mode),
            tensor_split: one(&given.tensor_split, &self.tensor_split),
            main_gpu: one(&given.main_gpu, &self.main_gpu),
            override_tensor: all(&given.override_tensor, &self.override_tensor),
            n_cpu_moe: one(&given.n_cpu_moe, &self.n_cpu_moe),
            cpu_moe: given.cpu_moe || self.cpu_moe,
            no_kv_offload: given.no_kv_offload || self.no_kv_offload,
            cache_split: unusual(&given.cache_split, &self.cache_split, &usual.cache_split),
            n_gpu_layers: one(&given.n_gpu_layers, &self.n_gpu_layers),
            cache_type_k: one(&given.cache_type_k, &self.cache_type_k),
            cache_type_v: one(&given.cache_type_v, &self.cache_type_v),
            ctx_size: all(&given.ctx_size, &self.ctx_size),
            ubatch_size: one(&given.ubatch_size, &self.ubatch_size),
            parallel: one(&given.parallel, &self.parallel),
            spec_type: unusual(&given.spec_type, &self.spec_type, &usual.spec_type),
            engine: unusual(&given.engine, &self.engine, &usual.engine),
            backend: one(&given.backend, &self.backend),
            depth: unusual(&given.depth, &self.depth, &usual.depth),
            deterministic: unusual(
                &given.deterministic,
                &self.deterministic,
                &usual.deterministic,
            ),
            flash_attn: unusual(&given.flash_attn, &self.flash_attn, &usual.flash_attn),
            engine_memory: unusual(
                &given.engine_memory,
                &self.engine_memory,
                &usual.engine_memory,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_options_replace_others() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let read = |text: &str| PlacementArgs::read(&words(text)).expect("options");
        let own = read("--devices cpu -ctk q8_0 -c 64 --deterministic on");
        let found = own.with(&words("--devices cpu,cpu -ctv q4_0 -c 128"));
        let expected = read("--devices cpu,cpu -ctk q8_0 -ctv q4_0 -c 128 --deterministic on");
        assert_eq!(found.expect("options"), expected);
        assert!(own.with(&words("--no-such-option")).is_err());
    }
}
