use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::constants::IDP_WEIGHTS;
use super::key::KernelKey;
use crate::nvrtc::{CodeCounts, LoopUnit};

/// The counts of a kernel on a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounts {
    /// The template.
    pub kernel: String,
    /// The type of the weights or the cache; all arguments of other kernels.
    pub weights: String,
    /// The NVRTC target.
    pub target: String,
    /// Registers per thread.
    pub registers: u32,
    /// Declared shared memory per block, in bytes.
    pub shared: u32,
    /// Instructions per warp.
    pub code: CodeCounts,
}

/// A kernel without counts, for example because the target is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction counts for target {target} are missing: TPC_BLESS=1 writes them")]
pub struct NoCounts {
    /// The target.
    pub target: String,
}

/// Counts by kernel, weight type and target.
#[derive(Clone, Debug, Default)]
pub struct KernelTable {
    rows: BTreeMap<(String, KernelKey), KernelCounts>,
}

/// Returns the table of this repository.
pub fn table() -> &'static KernelTable {
    static TABLE: LazyLock<KernelTable> = LazyLock::new(|| {
        KernelTable::parse(include_str!("kernels.ron")).expect("invariant: a test reads it")
    });
    &TABLE
}

impl KernelTable {
    /// Parses a table.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not RON or has other fields.
    pub fn parse(text: &str) -> Result<KernelTable, ron::error::SpannedError> {
        let rows: Vec<KernelCounts> = ron::from_str(text)?;
        let mut out = KernelTable::default();
        rows.into_iter().for_each(|row| out.insert(row));
        Ok(out)
    }

    /// Formats the table, one kernel and target per line.
    ///
    /// # Errors
    ///
    /// Returns an error if a row cannot be written.
    pub fn format(&self) -> Result<String, ron::Error> {
        let mut out = String::from(
            "// Instructions per warp and registers of kernels. `TPC_BLESS=1 cargo test --workspace --test nvrtc -- step_model::kernels`\n\
             // writes this file. `once` has the instructions outside the main loop, `each` an iteration, `done` the units of\n\
             // an iteration, and `other` further forms of the loop.\n[\n",
        );
        for row in self.rows.values() {
            out.push_str(&format!("    {},\n", ron::to_string(row)?));
        }
        out.push_str("]\n");
        Ok(out)
    }

    /// Adds or replaces a row.
    pub fn insert(&mut self, row: KernelCounts) {
        let key = KernelKey {
            kernel: row.kernel.clone(),
            weights: row.weights.clone(),
        };
        self.rows.insert((row.target.clone(), key), row);
    }

    /// Returns the row of a key, if the table has it.
    pub fn row(&self, target: &str, key: &KernelKey) -> Option<&KernelCounts> {
        self.rows.get(&(target.to_owned(), key.clone()))
    }

    /// Returns all rows.
    pub fn rows(&self) -> impl Iterator<Item = &KernelCounts> {
        self.rows.values()
    }

    /// Returns the counts of a kernel by name.
    ///
    /// If the table lacks the weight type, returns the kernel with the loop of `gemv` or `plane_gemm` for this type. If it lacks the template, returns the median of kernels without weights.
    ///
    /// # Errors
    ///
    /// Returns an error if the table lacks the target.
    pub fn of(&self, target: &str, name: &str) -> Result<KernelCounts, NoCounts> {
        let key = KernelKey::of(name);
        if let Some(row) = self.row(target, &key) {
            return Ok(row.clone());
        }
        let of_target = || {
            let rows = self.rows.iter().filter(|((t, _), _)| t == target);
            rows.map(|((_, key), row)| (key, row))
        };
        let alike: Vec<_> = of_target()
            .filter(|(k, _)| k.template() == key.template())
            .collect();
        // Prefer the same number, then the most similar arguments.
        let score = |k: &KernelKey| (k.kernel == key.kernel, common(&k.weights, &key.weights));
        if let Some((found, row)) = alike.into_iter().max_by_key(|(k, _)| score(k)) {
            let mut row = row.clone();
            if found.weights != key.weights {
                self.replace_loop(target, &mut row, &key.weights);
            }
            return Ok(row);
        }
        let unit = |row: &KernelCounts| row.code.unit;
        let plain = [LoopUnit::Bytes, LoopUnit::None];
        let mut others: Vec<_> = of_target()
            .filter(|(_, row)| plain.contains(&unit(row)))
            .collect();
        others.sort_by_key(|(_, row)| row.code.total());
        let middle = others.get(others.len() / 2);
        middle
            .map(|(_, row)| (*row).clone())
            .ok_or_else(|| NoCounts {
                target: target.to_owned(),
            })
    }

    /// Returns the instructions per weight of the whole kernel of a product for one token, with four rows per warp and
    /// `k` elements per row. Instructions outside the main loop count once, also other forms of the loop.
    pub fn instructions_per_weight(&self, target: &str, weights: &str, k: u64) -> Option<f64> {
        const ROWS: f64 = 4.0;
        let key = KernelKey {
            kernel: "gemv 4".to_owned(),
            weights: weights.to_owned(),
        };
        let code = self.row(target, &key)?.code;
        let weights = ROWS * k as f64 / 32.0;
        let trips = weights / (IDP_WEIGHTS * f64::from(code.done.max(1)));
        let all = f64::from(code.once + code.other) + f64::from(code.each) * trips;
        Some(all / weights)
    }

    /// Scales the loop of a row to the loop of the plain product with weights of another type.
    fn replace_loop(&self, target: &str, row: &mut KernelCounts, weights: &str) {
        let kernel = match row.code.unit {
            LoopUnit::Idp => "gemv 4",
            LoopUnit::Hmma => "plane_gemm 128",
            _ => return,
        };
        let plain = KernelKey {
            kernel: kernel.to_owned(),
            weights: weights.to_owned(),
        };
        let Some(plain) = self.row(target, &plain) else {
            return;
        };
        row.weights = weights.to_owned();
        row.registers = row.registers.max(plain.registers);
        let scaled = u64::from(plain.code.each) * u64::from(row.code.done);
        row.code.each = (scaled / u64::from(plain.code.done.max(1))) as u32;
    }
}

/// Returns the number of equal bytes at the start of two texts.
fn common(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kernel: &str, weights: &str, once: u32, each: u32, unit: LoopUnit) -> KernelCounts {
        KernelCounts {
            kernel: kernel.to_owned(),
            weights: weights.to_owned(),
            target: "sm_89".to_owned(),
            registers: 64,
            shared: 0,
            code: CodeCounts {
                unit,
                once,
                each,
                done: 64,
                other: 0,
            },
        }
    }

    #[test]
    fn the_table_has_all_targets() {
        let table = KernelTable::parse(include_str!("kernels.ron")).expect("the table is RON");
        for target in crate::nvrtc::TARGETS {
            assert!(
                table
                    .of(target, "gemv<Q4KPlanes, NoEpilogue, F32, 0, 4>")
                    .is_ok(),
                "{target}"
            );
        }
        let again = KernelTable::parse(&table.format().expect("rows")).expect("RON");
        assert_eq!(again.rows, table.rows);
        assert!(table.of("sm_61", "halves<F32>").is_err());
    }

    #[test]
    fn missing_types_have_their_own_loop() {
        let mut table = KernelTable::default();
        table.insert(row("gemv 4", "Q4K", 400, 188, LoopUnit::Idp));
        table.insert(row("gemv 4", "Q6K", 500, 258, LoopUnit::Idp));
        table.insert(row("glu_gemv 1", "Q4K", 800, 190, LoopUnit::Idp));
        table.insert(row("halves", "F32", 300, 0, LoopUnit::None));
        let of = |name: &str| table.of("sm_89", name).expect("a target").code;
        let glu = of("glu_gemv<Q6KPlanes, Swiglu, F32, 0, 0, 1>");
        assert_eq!([glu.once, glu.each], [800, 258]);
        assert_eq!(of("unknown<F32>").once, 300);
        assert_eq!(of("glu_gemv<Q4KPlanes, Swiglu, F32, 0, 0, 0>").each, 190);
    }
}
