use serde::{Deserialize, Serialize};

/// The template of a kernel, and the type of its weights or of the cache.
///
/// A number that ends the arguments (or else begins them) is part of the template: rows per lane, or the size of a tile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KernelKey {
    /// The template.
    pub kernel: String,
    /// The type of the weights or the cache; all arguments of other kernels.
    pub weights: String,
}

impl KernelKey {
    /// Returns the key of a template with its arguments.
    pub fn of(name: &str) -> KernelKey {
        let (template, arguments) = name.split_once('<').unwrap_or((name, ""));
        let words = arguments.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let words: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
        let planes = words.iter().find_map(|w| w.strip_suffix("Planes"));
        let cache = words.get(1).filter(|_| KernelKey::is_attention(template));
        let Some(weights) = planes.or(cache.copied()) else {
            return KernelKey {
                kernel: template.to_owned(),
                weights: arguments.strip_suffix('>').unwrap_or(arguments).to_owned(),
            };
        };
        let number = |w: &&&str| w.bytes().all(|b| b.is_ascii_digit());
        let number = words.last().filter(number).or(words.first().filter(number));
        KernelKey {
            kernel: match number {
                Some(number) => format!("{template} {number}"),
                None => template.to_owned(),
            },
            weights: weights.to_owned(),
        }
    }

    /// Returns the template without its number.
    pub fn template(&self) -> &str {
        self.kernel.split(' ').next().unwrap_or("")
    }

    /// True for attention that reads a cache in chunks or tiles.
    pub fn is_attention(template: &str) -> bool {
        template.starts_with("flash_")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_a_template_and_weight_type_share_a_key() {
        let of = |name: &str| {
            let key = KernelKey::of(name);
            (key.kernel, key.weights)
        };
        let key = |kernel: &str, weights: &str| (kernel.to_owned(), weights.to_owned());
        assert_eq!(
            of("gemv<Q4KPlanes, NoEpilogue, F32, 0, 4>"),
            key("gemv 4", "Q4K")
        );
        let grouped = "grouped_gemms<128, 128, GroupedProduct<Q6KPlanes, NoEpilogue, F32, 2>>";
        assert_eq!(of(grouped), key("grouped_gemms 2", "Q6K"));
        assert_eq!(
            of("flash_decode<F32, F16, Q8_0, F32, F32, F32, 1, 4>"),
            key("flash_decode 4", "F16")
        );
        assert_eq!(of("halves<F32>"), key("halves", "F32"));
        let norm = "norm_mul<AddRows<TensorRows<F32>, F32>, F32, F32, 0, 1>";
        assert_eq!(of(norm).1, "AddRows<TensorRows<F32>, F32>, F32, F32, 0, 1");
        assert_eq!(of("soft_max"), key("soft_max", ""));
    }
}
