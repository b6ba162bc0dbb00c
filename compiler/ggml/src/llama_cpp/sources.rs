//! Finds the line of llama.cpp's sources that makes a captured tensor.
//!
//! llama.cpp names a tensor after it makes it: `cur = ggml_add(ctx0, cur, bias); cb(cur, "ffn_out", il);`. The name in
//! the capture is `ffn_out-3`. Several statements may give one name, so the tensor's op and the names nearby select the
//! statement. If several statements remain, no line is returned.
//!
//! Functions such as `build_norm` make ops for all architectures. The line of such an op is the line of the
//! architecture's file that calls the function: the statement whose result is the next named tensor, or an operand of
//! it.
//!
//! Names do not identify an architecture: files of related models have the same names. So the caller gives it.

use std::collections::BTreeSet;

use crate::capture::Record;
use crate::op::OpKind;

/// The number of lines before a name in which a statement makes the tensor.
const BEFORE: usize = 40;
/// The number of tensors after an op among which the result of its function is searched. Attention makes about 20.
const AFTER: usize = 60;

/// A source file with the tensors that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path.
    pub path: String,
    names: Vec<Named>,
    /// Names of architectures in model files, with their names in the sources, as in
    /// `{ LLM_ARCH_OPENAI_MOE, "gpt-oss" }`.
    architectures: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: String,
    /// The line of the name, from 1.
    line: usize,
    /// The statements that assign the variable, the nearest first.
    made: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Statement {
    /// The line, from 1.
    line: usize,
    text: String,
    /// The line of the function's call that makes each operand of ggml's constructor.
    operands: Vec<Option<usize>>,
}

/// The source files of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(Vec<SourceFile>);

impl SourceFile {
    /// Reads a source file.
    pub fn parse(path: &str, text: &str) -> SourceFile {
        let lines: Vec<&str> = text.lines().collect();
        let mut names = Vec::new();
        for (i, line) in lines.iter().enumerate() {
            if let Some((variable, name)) = naming(line) {
                names.push(Named {
                    name: name.to_owned(),
                    line: i + 1,
                    made: assignments(&lines, i, variable),
                });
            }
        }
        SourceFile {
            path: path.to_owned(),
            names,
            architectures: lines.iter().filter_map(|l| architecture(l)).collect(),
        }
    }

    /// True if the file describes one architecture. Files such as `delta-net-base.cpp` have functions of several.
    fn is_model(&self) -> bool {
        self.path.replace('\\', "/").contains("models/") && !self.stem().ends_with("base")
    }

    fn stem(&self) -> &str {
        let file = self.path.rsplit(['/', '\\']).next().unwrap_or_default();
        file.split('.').next().unwrap_or_default()
    }
}

/// Returns the variable and the name in a line such as `cb(cur, "ffn_out", il);`.
fn naming(line: &str) -> Option<(&str, &str)> {
    let code = line.split("//").next().unwrap_or_default();
    let at = code.find("cb(")?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if code[..at].chars().next_back().is_some_and(is_word) {
        return None;
    }
    let (variable, rest) = code[at + 3..].split_once(',')?;
    let name = rest.trim_start().strip_prefix('"')?.split('"').next()?;
    (!name.is_empty()).then_some((variable.trim(), name))
}

/// Returns the name of an architecture and its name in the sources, in a line such as
/// `{ LLM_ARCH_OPENAI_MOE, "gpt-oss" },`.
fn architecture(line: &str) -> Option<(String, String)> {
    let (name, rest) = line.trim().strip_prefix('{')?.trim().split_once(',')?;
    let name = name.trim().strip_prefix("LLM_ARCH_")?;
    let known = rest.trim().strip_prefix('"')?.split('"').next()?;
    Some((known.to_owned(), name.to_owned()))
}

/// Returns the statements of the function before a line that assign a variable, the nearest first, with the calls that
/// make their operands.
fn assignments(lines: &[&str], before: usize, variable: &str) -> Vec<Statement> {
    let mut all = statements(lines, before, variable);
    for statement in &mut all {
        let operand = |word: &str| {
            let made = statements(lines, statement.line - 1, word);
            let nearest = made.first().filter(|s| calls(&s.text));
            nearest.map(|s| s.line)
        };
        statement.operands = arguments(&statement.text).map(operand).collect();
    }
    all
}

/// Returns the arguments of ggml's constructor in a statement, without the context.
fn arguments(statement: &str) -> impl Iterator<Item = &str> {
    let call = statement.split_once("ggml_").map_or("", |(_, call)| call);
    let inner = call.split_once('(').map_or("", |(_, inner)| inner);
    inner.split([',', ')']).skip(1).map(str::trim)
}

fn statements(lines: &[&str], before: usize, variable: &str) -> Vec<Statement> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if variable.is_empty() || !variable.chars().all(is_word) {
        return Vec::new();
    }
    let mut out = Vec::new();
    for i in (before.saturating_sub(BEFORE)..before).rev() {
        let line = lines[i];
        if line.starts_with('}') {
            break;
        }
        if assigns(line, variable) {
            let mut text = String::new();
            for part in &lines[i..before] {
                text.push_str(part.split("//").next().unwrap_or_default());
                if text.contains(';') {
                    break;
                }
            }
            out.push(Statement {
                line: i + 1,
                text,
                operands: Vec::new(),
            });
        }
    }
    out
}

/// True for `variable = …`, also in a declaration, a `case`, or a list of variables.
fn assigns(line: &str, variable: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    while let Some(found) = code[at..].find(variable) {
        let start = at + found;
        let end = start + variable.len();
        at = end;
        let before = code[..start].chars().next_back();
        let after = code[end..].trim_start();
        if before.is_some_and(|c| is_word(c) || c == '.' || c == '>') {
            continue;
        }
        let plain = after.starts_with('=') && !after.starts_with("==");
        let listed = code[..start].contains("auto [") && after.contains("] =");
        if plain || listed {
            return true;
        }
    }
    false
}

/// True if a statement calls ggml's constructor of an op, or llama.cpp's helper for the op.
fn makes(statement: &str, op: &str) -> bool {
    let lower = op.to_lowercase();
    let helpers: &[&str] = match op {
        "MUL_MAT" => &["build_lora_mm("],
        "MUL_MAT_ID" => &["build_lora_mm_id("],
        "MUL" | "RMS_NORM" | "NORM" => &["build_norm("],
        "GET_ROWS" => &["build_inp_embd("],
        _ => &[],
    };
    if helpers.iter().any(|h| statement.contains(h)) {
        return true;
    }
    let prefix = format!("ggml_{lower}");
    statement.match_indices(&prefix).any(|(at, _)| {
        let rest = &statement[at + prefix.len()..];
        let suffix = rest
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next();
        let suffix = suffix.unwrap_or_default();
        // `ggml_mul_mat` does not make a MUL.
        let other = format!("{op}{}", suffix.to_uppercase());
        let is_other = OpKind::ALL.iter().any(|k| k.name() == other) && !suffix.is_empty();
        (suffix.is_empty() || suffix.starts_with('_')) && !is_other
    })
}

/// True if a statement calls a function that makes several ops, such as `build_attn`.
fn calls(statement: &str) -> bool {
    // A part of a pair is the result of a function. `build_lora_mm` makes a product, which `makes` knows.
    let pair = [".first;", ".second;"]
        .iter()
        .any(|p| statement.contains(p));
    pair || statement.contains("build_") && !statement.contains("build_lora_mm")
}

/// Returns the name in the sources of a tensor's name: `ffn_out-3` is `ffn_out`. Returns `None` for a name that ggml
/// derives.
fn stem(name: &str) -> Option<&str> {
    if name.is_empty() || name.contains(" (") {
        return None;
    }
    match name.rsplit_once('-') {
        Some((stem, layer)) if layer.bytes().all(|b| b.is_ascii_digit()) => Some(stem),
        _ => Some(name),
    }
}

impl Sources {
    /// Returns the sources with these files.
    pub fn new(files: Vec<SourceFile>) -> Sources {
        Sources(files)
    }

    /// Returns the file of an architecture, which has the architecture's name or its name in the sources.
    fn model(&self, architecture: &str) -> Option<&SourceFile> {
        let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
        let mut named = self.0.iter().flat_map(|f| &f.architectures);
        let own = named.find(|(known, _)| known == architecture);
        let names = [architecture, own.map_or(architecture, |(_, own)| own)].map(plain);
        let mut models = self.0.iter().filter(|f| f.is_model());
        models.find(|f| names.contains(&plain(f.stem())))
    }

    /// Returns the path and line of the statement that makes each record; `None` if there is not exactly one. Without an
    /// architecture, only the shared files count.
    pub fn locate(
        &self,
        records: &[Record],
        architecture: Option<&str>,
    ) -> Vec<Option<(String, usize)>> {
        let names: BTreeSet<&str> = records.iter().filter_map(|t| stem(&t.name)).collect();
        let model = architecture.and_then(|a| self.model(a));
        let shared = self.0.iter().filter(|f| !f.is_model());
        let files: Vec<&SourceFile> = model.into_iter().chain(shared).collect();
        let of = |t: &Record| {
            let name = stem(&t.name).filter(|_| !t.is_leaf())?;
            // The file of the architecture decides before the shared files.
            let model = files.iter().filter(|f| f.is_model());
            let shared = files.iter().filter(|f| !f.is_model());
            let found = only(model, name, t.op.name(), &names);
            let found = found.map(|place| (place, true));
            found.or_else(|| Some((only(shared, name, t.op.name(), &names)?, false)))
        };
        let own: Vec<Option<(Place, bool)>> = records.iter().map(of).collect();
        let place = |i: usize| {
            let plain = |(p, _): &(Place, bool)| (p.path.clone(), p.line);
            match &own[i] {
                Some(found @ (_, true)) => Some(plain(found)),
                other => caller(records, i, &own).or(other.as_ref().map(plain)),
            }
        };
        (0..records.len()).map(place).collect()
    }
}

/// A statement that makes a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    path: String,
    line: usize,
    /// True if the statement calls a function that makes several ops.
    calls: bool,
    /// The line of the function's call that makes each operand.
    operands: Vec<Option<usize>>,
}

/// Returns the path and line of the architecture's file whose function makes op `i`: the statement of the first tensor
/// that depends on the op and has a statement in this file, or the call that makes this tensor's operand. `own` has the
/// statement of each record, with true for the architecture's file.
fn caller(records: &[Record], i: usize, own: &[Option<(Place, bool)>]) -> Option<(String, usize)> {
    if records[i].is_leaf() {
        return None;
    }
    let mut reached = BTreeSet::from([i]);
    let end = records.len().min(i + 1 + AFTER);
    for (j, t) in records.iter().enumerate().take(end).skip(i + 1) {
        // An op that writes to a leaf, such as a cache, passes its result to all later readers of the leaf.
        let written = |s: usize| records[i].writes() && records[s].root == records[i].root;
        let depends = |s: &Option<usize>| s.is_some_and(|s| reached.contains(&s) || written(s));
        let Some(position) = t.src.iter().position(depends) else {
            continue;
        };
        reached.insert(j);
        if let Some((place, true)) = &own[j] {
            let line = match place.calls {
                true => Some(place.line),
                false => place.operands.get(position).copied().flatten(),
            };
            return Some((place.path.clone(), line?));
        }
    }
    None
}

/// Returns the only statement that makes a tensor with this name and op. If there are several, returns the one with
/// most names of the capture nearby.
fn only<'f>(
    files: impl Iterator<Item = &'f &'f SourceFile>,
    name: &str,
    op: &str,
    names: &BTreeSet<&str>,
) -> Option<Place> {
    let mut found: Vec<(usize, Place)> = Vec::new();
    for file in files {
        for (i, named) in file.names.iter().enumerate() {
            if named.name != name {
                continue;
            }
            let statement = named.made.iter().find(|s| makes(&s.text, op));
            // The result of a function may be of any op.
            let result = || named.made.first().filter(|s| calls(&s.text));
            if let Some(statement) = statement.or_else(result) {
                let near = &file.names[i.saturating_sub(2)..file.names.len().min(i + 3)];
                let known = near.iter().filter(|n| names.contains(n.name.as_str()));
                let place = Place {
                    path: file.path.clone(),
                    line: statement.line,
                    calls: calls(&statement.text),
                    operands: statement.operands.clone(),
                };
                found.push((known.count(), place));
            }
        }
    }
    found.sort_by_key(|(known, _)| std::cmp::Reverse(*known));
    found.dedup_by(|a, b| a.1 == b.1);
    match found.as_slice() {
        [(_, place)] => Some(place.clone()),
        [(a, place), (b, _), ..] if a > b => Some(place.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture;

    const MODEL: &str = "\
graph::graph() {
    cur = build_norm(inpL, layer.attn_norm, NULL, LLM_NORM_RMS, il);
    cb(cur, \"attn_norm\", il);
    auto [Qcur, Kcur] = build_qkv(cur);
    Qcur = ggml_rope_ext(
            ctx0, Qcur, inp_pos);
    cb(Qcur, \"Qcur\", il);
    cb(Qcur, \"first\", il);
    cb(Qcur, \"second\", il);
    if (moe) {
        cur = ggml_mul(ctx0, cur, x);
        cb(cur, \"ffn_norm\", il);
        cb(cur, \"ffn_moe_out\", il);
        cb(cur, \"ffn_moe\", il);
    } else {
        cur = ggml_mul(ctx0, cur, y);
        cb(cur, \"ffn_norm\", il);
        cb(cur, \"attn_norm\", il);
    }
    // cb(cur, \"never\", il);
    cur = ggml_add(ctx0, cur, z);
    cb(cur, \"twice\", il);
    cur = ggml_add(ctx0, cur, z);
    cb(cur, \"twice\", il);
}
";
    const SHARED: &str = "\
    Qcur = build_lora_mm(layer.wq, cur);
    cb(Qcur, \"Qcur\", il);
    probs = ggml_mul_mat(ctx0, a, b);
    cb(probs, \"product\", il);
";

    fn record(name: &str, op: &str) -> String {
        format!(
            "{{\"id\":1,\"name\":\"{name}\",\"op\":\"{op}\",\"type\":\"f32\",\"ne\":[1,1,1,1],\"nb\":[4,4,4,4],\
             \"params\":[],\"src\":[0,0],\"view\":-1,\"view_offs\":0,\"flags\":0}}"
        )
    }

    fn located(name: &str, op: &str) -> Option<(String, usize)> {
        let leaf = record("x", "NONE")
            .replace("\"id\":1", "\"id\":0")
            .replace("[0,0]", "[]");
        let other = record("attn_norm-0", "MUL").replace("\"id\":1", "\"id\":2");
        let text = format!("{leaf}\n{}\n{other}\n", record(name, op));
        let records = capture::records(&text).expect("a capture");
        let sources = Sources::new(vec![
            SourceFile::parse("src/models/one.cpp", MODEL),
            SourceFile::parse("src/graph.cpp", SHARED),
        ]);
        sources.locate(&records, Some("one"))[1].clone()
    }

    #[test]
    fn the_statement_that_makes_a_tensor_is_found() {
        let model = |line| Some(("src/models/one.cpp".to_owned(), line));
        let shared = |line| Some(("src/graph.cpp".to_owned(), line));
        assert_eq!(located("Qcur-3", "ROPE"), model(5));
        assert_eq!(located("Qcur-3", "MUL_MAT"), shared(1));
        assert_eq!(located("product", "MUL_MAT"), shared(3));
        assert_eq!(located("product", "MUL"), None);
        // The names of the other branch are not in the capture.
        assert_eq!(located("ffn_norm-1", "MUL"), model(16));
    }

    /// The norm of `build_norm` belongs to the line that calls it, and its statement to the shared file.
    #[test]
    fn an_op_of_a_function_is_where_the_function_is_called() {
        let line = |id: usize, name: &str, op: &str, src: &str| {
            record(name, op)
                .replace("\"id\":1", &format!("\"id\":{id}"))
                .replace("[0,0]", src)
        };
        let text = [
            line(0, "x", "NONE", "[]"),
            line(1, "norm-0", "RMS_NORM", "[0]"),
            line(2, "attn_norm-0", "MUL", "[1,0]"),
            line(3, "node_3", "SUB", "[2,0]"),
            line(4, "Qcur-0", "ROPE", "[3,0]"),
        ];
        let records = capture::records(&text.join("\n")).expect("a capture");
        let sources = Sources::new(vec![
            SourceFile::parse("src/models/one.cpp", MODEL),
            SourceFile::parse(
                "src/graph.cpp",
                "    cur = ggml_rms_norm(ctx0, cur, eps);\n    cb(cur, \"norm\", il);\n",
            ),
        ]);
        let places = sources.locate(&records, Some("one"));
        let model = |line| Some(("src/models/one.cpp".to_owned(), line));
        // The next tensor of `node_3` is made by ggml's own constructor, and its operand by `build_qkv`.
        assert_eq!(places[1..], [model(2), model(2), model(4), model(5)]);
    }

    #[test]
    fn nothing_is_invented() {
        for (name, op) in [
            ("never-0", "MUL"),
            ("twice-0", "ADD"),
            ("Qcur-3", "SUB"),
            ("Qcur-3 (view)", "ROPE"),
            ("", "ADD"),
        ] {
            assert_eq!(located(name, op), None, "{name} {op}");
        }
    }

    #[test]
    fn the_file_of_an_architecture_has_one_of_its_names() {
        let mut files = ["a", "b-c", "openai-moe", "delta-base"]
            .map(|stem| SourceFile::parse(&format!("src/models/{stem}.cpp"), MODEL))
            .to_vec();
        let names = "    { LLM_ARCH_OPENAI_MOE,  \"gpt-oss\" },\n    { LLM_ARCH_X, \"x\" },\n";
        files.push(SourceFile::parse("src/llama-arch.cpp", names));
        let sources = Sources::new(files);
        let path = |name| sources.model(name).map(|f| f.path.as_str());
        assert_eq!(path("B_C"), Some("src/models/b-c.cpp"));
        assert_eq!(path("gpt-oss"), Some("src/models/openai-moe.cpp"));
        assert_eq!(path("x"), None);
        assert_eq!(path("delta-base"), None);
    }
}
