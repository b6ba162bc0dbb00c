//! Kernels in files: a record of an instance, and the instance of a record.

use serde::{Deserialize, Serialize};
use tpc_ir::DType;

use super::source::{Arguments, Family, Instance};
use super::{
    attention, best_logits, collective, flash_prefill, hc_comb, heads, lightning_indexer, matmul,
    merge_attn, movement, ngram_rows, norm, pointwise, pool_2d, product_template, recurrent,
    reduce, rope, router, rows,
};

/// The families with the templates of all kernels.
const FAMILIES: [Family; 20] = [
    attention::FAMILY,
    best_logits::FAMILY,
    collective::FAMILY,
    flash_prefill::FAMILY,
    hc_comb::FAMILY,
    heads::FAMILY,
    lightning_indexer::FAMILY,
    matmul::FAMILY,
    merge_attn::FAMILY,
    movement::FAMILY,
    ngram_rows::FAMILY,
    norm::FAMILY,
    pointwise::FAMILY,
    pool_2d::FAMILY,
    product_template::FAMILY,
    recurrent::FAMILY,
    reduce::FAMILY,
    rope::FAMILY,
    router::FAMILY,
    rows::FAMILY,
];

/// Arguments without a number.
const ARGUMENTS: [(&str, Arguments); 3] = [
    ("views", Arguments::Views),
    ("params", Arguments::Params),
    ("faults", Arguments::Faults),
];
/// The word before the number of weights.
const WEIGHTS: &str = "weights ";
/// The maximum number of weights in a file.
const MAX_WEIGHTS: usize = 64;

fn arguments_name(arguments: Arguments) -> String {
    match (arguments, ARGUMENTS.iter().find(|(_, a)| *a == arguments)) {
        (Arguments::Weights(n), _) => format!("{WEIGHTS}{n}"),
        (_, found) => found.map_or("", |(name, _)| name).to_owned(),
    }
}

fn arguments_named(name: &str) -> Option<Arguments> {
    let plain = ARGUMENTS.iter().find(|(n, _)| *n == name);
    let weights = || {
        let n = name.strip_prefix(WEIGHTS)?.parse().ok();
        n.filter(|n| (1..=MAX_WEIGHTS).contains(n))
            .map(Arguments::Weights)
    };
    plain.map(|(_, a)| *a).or_else(weights)
}

/// An [`Instance`] as a file stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceRecord {
    /// The family, which is the name of the module.
    pub family: String,
    /// The template with its arguments.
    pub template: String,
    /// The element types whose tables the source needs.
    pub dtypes: Vec<String>,
    /// The arguments of the template: `views`, `params`, `faults`, or `weights` and their number.
    pub arguments: String,
    /// True if the kernel prefetches weights.
    pub prefetch: bool,
    /// The threads per block, and the blocks per multiprocessor for which registers must suffice.
    pub launch_bounds: Option<(u32, u32)>,
}

impl InstanceRecord {
    /// Returns the record of an instance.
    pub fn new(instance: &Instance) -> InstanceRecord {
        InstanceRecord {
            family: instance.module().to_owned(),
            template: instance.name().to_owned(),
            dtypes: instance.dtypes().iter().map(DType::to_string).collect(),
            arguments: arguments_name(instance.arguments()),
            prefetch: instance.prefetches(),
            launch_bounds: instance.launch_bounds(),
        }
    }

    /// Returns the number of weights that are arguments of the kernel.
    pub fn weights(&self) -> usize {
        match arguments_named(&self.arguments) {
            Some(Arguments::Weights(n)) => n,
            _ => 0,
        }
    }

    /// Returns the instance, with this tpc's templates. `None` if this tpc lacks the family, a type or an argument, or
    /// the template is not a name with arguments.
    pub fn instance(&self) -> Option<Instance> {
        let family = FAMILIES.iter().find(|f| f.name == self.family)?;
        let arguments = arguments_named(&self.arguments)?;
        let dtypes: Option<Vec<DType>> = self.dtypes.iter().map(|t| DType::from_name(t)).collect();
        is_template(&self.template).then_some(())?;
        let out = Instance::restored(*family, &self.template, dtypes?, arguments);
        let out = match self.launch_bounds {
            Some((threads, blocks)) => out.with_launch_bounds(threads, blocks),
            None => out,
        };
        Some(match self.prefetch {
            true => out.with_weight_prefetch(),
            false => out,
        })
    }
}

/// True if a text is a name with template arguments: names, numbers, `<`, `>`, commas and spaces.
fn is_template(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_<>, ".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    begins && text.len() <= 4096 && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_different_names() {
        let mut names: Vec<&str> = FAMILIES.iter().map(|f| f.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAMILIES.len());
    }

    #[test]
    fn templates_are_names_with_arguments() {
        for good in ["rows", "heads<2, Head<F16, 3>>", "mul_mat<F32, 4>"] {
            assert!(is_template(good), "{good}");
        }
        for bad in ["", "1x", "a();b", "a\n", "a\"", "a{", "a#"] {
            assert!(!is_template(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_record_gives_its_instance() {
        let types = [DType::Iq2Xs, DType::F32];
        let instance = Instance::new(rows::FAMILY, "get_rows", &types, Arguments::Faults);
        let instance = instance.with_launch_bounds(128, 2);
        let record = InstanceRecord::new(&instance);
        let found = record.instance().expect("a known kernel");
        assert_eq!(
            found.single_kernel_source().text,
            instance.single_kernel_source().text
        );
        for (arguments, name) in [
            (Arguments::Faults, "faults"),
            (Arguments::Weights(3), "weights 3"),
        ] {
            assert_eq!(arguments_name(arguments), name);
            assert_eq!(arguments_named(name), Some(arguments));
        }
        for bad in ["", "weights", "weights 0", "weights 65", "weights x"] {
            assert_eq!(arguments_named(bad), None, "{bad}");
        }
        let other = InstanceRecord {
            family: "other".to_owned(),
            ..record
        };
        assert!(other.instance().is_none());
    }
}
