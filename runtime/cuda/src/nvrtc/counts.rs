//! Counts of a kernel's instructions, for the model of a step.

use serde::{Deserialize, Serialize};

use super::loops::{Loop, innermost, loops};

/// The work that determines how often a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoopUnit {
    /// `dp4a` instructions. Two multiply four weights with both terms.
    Idp,
    /// Tensor instructions of int8.
    Imma,
    /// Tensor instructions of f16.
    Hmma,
    /// Multiply-adds of f32.
    Ffma,
    /// Bytes that a thread loads from memory.
    Bytes,
    /// No loop is counted.
    None,
}

/// The instructions of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeCounts {
    /// The unit of `done`.
    pub unit: LoopUnit,
    /// Instructions outside the main loop, each once.
    pub once: u32,
    /// Instructions of an iteration of the main loop.
    pub each: u32,
    /// Units that an iteration does.
    pub done: u32,
    /// Instructions of other forms of the main loop, which a launch with full tiles does not run.
    pub other: u32,
}

impl CodeCounts {
    /// Counts a kernel's code. The main loop of a product is its shortest loop with `dp4a` or tensor instructions.
    /// In attention (`all`), all innermost loops with products are parts of the main loop. Other kernels have as main
    /// loop their longest innermost loop that loads from memory.
    pub fn of(code: &[String], all: bool) -> CodeCounts {
        let is_label = |line: &&String| line.starts_with(".L");
        let total = code.iter().filter(|l| !is_label(l)).count() as u32;
        let units = [
            (LoopUnit::Hmma, "HMMA"),
            (LoopUnit::Idp, "IDP"),
            (LoopUnit::Imma, "IMMA"),
        ];
        for (unit, word) in units {
            let found = innermost(&loops(code, |line| u32::from(line.contains(word))));
            if !found.is_empty() {
                return CodeCounts::with(unit, total, &found, all);
            }
        }
        if all {
            let found = innermost(&loops(code, |line| u32::from(line.contains("FFMA"))));
            // Loops with few multiply-adds compute exponentials.
            let found: Vec<Loop> = found.into_iter().filter(|l| l.wanted >= 8).collect();
            return CodeCounts::with(LoopUnit::Ffma, total, &found, all);
        }
        let found = innermost(&loops(code, loaded_bytes));
        let longest: Vec<Loop> = found
            .into_iter()
            .max_by_key(|l| l.each)
            .into_iter()
            .collect();
        CodeCounts::with(LoopUnit::Bytes, total, &longest, all)
    }

    fn with(unit: LoopUnit, total: u32, found: &[Loop], all: bool) -> CodeCounts {
        let inside: u32 = found.iter().map(|l| l.each).sum();
        let main = match all {
            true => found
                .iter()
                .fold((0, 0), |(n, w), l| (n + l.each, w + l.wanted)),
            false => {
                let shortest = found.iter().min_by_key(|l| l.each);
                shortest.map_or((0, 0), |l| (l.each, l.wanted))
            }
        };
        CodeCounts {
            unit: if found.is_empty() {
                LoopUnit::None
            } else {
                unit
            },
            once: total.saturating_sub(inside),
            each: main.0,
            done: main.1,
            other: inside - main.0,
        }
    }

    /// Returns all instructions of the code.
    pub const fn total(&self) -> u32 {
        self.once + self.each + self.other
    }
}

/// Returns the bytes that a thread loads from global memory with an instruction.
fn loaded_bytes(line: &str) -> u32 {
    let Some((_, rest)) = line.split_once("LDG.") else {
        return 0;
    };
    let name = rest.split_whitespace().next().unwrap_or("");
    let has = |word: &str| name.split('.').any(|part| part == word);
    if has("128") {
        16
    } else if has("64") {
        8
    } else if has("U16") || has("S16") {
        2
    } else if has("U8") || has("S8") {
        1
    } else {
        4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        text.lines().map(|l| l.trim().to_owned()).collect()
    }

    #[test]
    fn each_instruction_is_counted_once() {
        let product = code(
            "MOV R1, R2\n.L_x_0:\nLDG.E.128 R4, [R2.64]\nIDP.4A R8, R4\nIDP.4A R9, R4\n@P0 BRA `(.L_x_0)\n\
             .L_x_1:\nIDP.4A R8, R4\nMOV R1, R2\nMOV R1, R2\nMOV R1, R2\n@P0 BRA `(.L_x_1)\nEXIT",
        );
        let counts = CodeCounts::of(&product, false);
        assert_eq!(counts.unit, LoopUnit::Idp);
        assert_eq!(
            [counts.once, counts.each, counts.done, counts.other],
            [2, 4, 2, 5]
        );
        assert_eq!(counts.total(), 11);
    }

    #[test]
    fn loads_are_the_unit_of_other_loops() {
        let copy = code(
            ".L_x_0:\nLDG.E.64.CONSTANT R4, [R2.64]\n.L_x_1:\nLDG.E.U8 R4, [R2]\nLDG.E R5, [R2]\n@P0 BRA `(.L_x_1)\n\
             @P0 BRA `(.L_x_0)\nEXIT",
        );
        let counts = CodeCounts::of(&copy, false);
        assert_eq!(
            (counts.unit, counts.each, counts.done),
            (LoopUnit::Bytes, 3, 5)
        );
        let none = CodeCounts::of(&code("MOV R1, R2\nEXIT"), false);
        assert_eq!((none.unit, none.once, none.each), (LoopUnit::None, 2, 0));
    }

    #[test]
    fn attention_runs_all_loops_with_products() {
        let lines = "FFMA R1, R2, R3, R1\n".repeat(8);
        let text = format!(
            ".L_x_0:\n{lines}@P0 BRA `(.L_x_0)\n.L_x_1:\n{lines}MOV R1, R2\n@P0 BRA `(.L_x_1)\nEXIT"
        );
        let counts = CodeCounts::of(&code(&text), true);
        assert_eq!(
            [counts.once, counts.each, counts.done, counts.other],
            [1, 19, 16, 0]
        );
    }
}
