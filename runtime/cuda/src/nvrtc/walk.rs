use std::collections::{BTreeMap, VecDeque};

/// Returns the fewest instructions that a warp executes from the start to the end of a kernel, if it executes `work` in
/// order. An element of `work` is the start of an opcode, or several starts, divided by `|`.
///
/// - A branch goes either way. Paths that `work` does not need are not counted.
/// - An instruction with a predicate counts like any other.
/// - The instructions of a function that is called are not counted.
pub fn shortest_walk(code: &[String], work: &[&str]) -> Option<usize> {
    let graph = Graph::new(code);
    let states = work.len() + 1;
    let mut reached = vec![false; graph.instructions.len() * states];
    let mut queue = VecDeque::from([(0, 0, 1)]);
    while let Some((at, done, length)) = queue.pop_front() {
        let Some(instruction) = graph.instructions.get(at) else {
            continue;
        };
        if std::mem::replace(&mut reached[at * states + done], true) {
            continue;
        }
        let next = work.get(done);
        let fits = next.is_some_and(|w| w.split('|').any(|w| instruction.opcode.starts_with(w)));
        let done = done + usize::from(fits);
        if instruction.ends && done == work.len() {
            return Some(length);
        }
        let further = [
            instruction.target,
            instruction.falls_through.then_some(at + 1),
        ];
        queue.extend(
            further
                .into_iter()
                .flatten()
                .map(|to| (to, done, length + 1)),
        );
    }
    None
}

struct Instruction<'a> {
    opcode: &'a str,
    /// The instruction that a branch goes to.
    target: Option<usize>,
    falls_through: bool,
    ends: bool,
}

struct Graph<'a> {
    instructions: Vec<Instruction<'a>>,
}

impl<'a> Graph<'a> {
    fn new(code: &'a [String]) -> Graph<'a> {
        let is_label = |line: &str| line.starts_with(".L") && line.ends_with(':');
        let mut labels = BTreeMap::new();
        let mut lines = Vec::new();
        for line in code {
            match line.strip_suffix(':').filter(|_| is_label(line)) {
                Some(label) => {
                    labels.insert(label, lines.len());
                }
                None => lines.push(line.as_str()),
            }
        }
        let instructions = lines.into_iter().map(|l| instruction(l, &labels)).collect();
        Graph { instructions }
    }
}

fn instruction<'a>(line: &'a str, labels: &BTreeMap<&str, usize>) -> Instruction<'a> {
    let (predicate, rest) = match line.strip_prefix('@').and_then(|l| l.split_once(' ')) {
        Some((predicate, rest)) => (Some(predicate), rest),
        None => (None, line),
    };
    let (opcode, operands) = rest.split_once(' ').unwrap_or((rest, ""));
    let label = operands
        .split_once("`(")
        .and_then(|(_, l)| l.strip_suffix(')'));
    let named = label.and_then(|l| labels.get(l)).copied();
    // A call of a label of the kernel is a branch.
    let branches = opcode.starts_with("BRA") || opcode.starts_with("CALL") && named.is_some();
    let ends = opcode.starts_with("EXIT");
    // A branch may have its condition before the label, as in `BRA P0, ...` and `BRA.DIV UR4, ...`.
    let conditional = predicate.is_some() || branches && !operands.starts_with('`');
    let leaves = branches || ends || opcode.starts_with("RET");
    Instruction {
        opcode,
        target: named.filter(|_| branches),
        falls_through: conditional || !leaves,
        ends,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        text.lines().map(|l| l.trim().to_owned()).collect()
    }

    #[test]
    fn work_decides_the_branches() {
        let code = code(
            "MOV R1, c[0x0][0x28]
             @P0 BRA `(.L_x_1)
             .L_x_0:
             FFMA R0, R1, R2, R0
             IADD3 R3, R3, 0x1, RZ
             @P1 BRA `(.L_x_0)
             .L_x_1:
             BRA.DIV UR4, `(.L_x_2)
             SHFL.BFLY PT, R4, R0, 0x10, 0x1f
             @!P2 EXIT
             STG.E [R2.64], R4
             EXIT
             .L_x_2:
             CALL.REL.NOINC `($shuffle)
             BRA `(.L_x_1)",
        );
        assert_eq!(shortest_walk(&code, &[]), Some(5));
        assert_eq!(shortest_walk(&code, &["ST"]), Some(7));
        // An iteration has three instructions.
        assert_eq!(shortest_walk(&code, &["FFMA"]), Some(8));
        assert_eq!(
            shortest_walk(&code, &["HFMA2|FFMA", "FFMA", "SHFL"]),
            Some(11)
        );
        assert_eq!(shortest_walk(&code, &["CALL"]), Some(8));
        assert_eq!(shortest_walk(&code, &["SHFL", "FFMA"]), None);
    }
}
