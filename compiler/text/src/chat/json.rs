//! Writes JSON like Python's `json.dumps(…, ensure_ascii=False)`.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

const DEEPEST: usize = 128;

/// Returns JSON: on one line, or with one item per line and `indent` spaces per level.
pub(super) fn dumps(value: &Value, indent: Option<usize>) -> Result<String, Error> {
    let mut out = String::new();
    write(value, indent.map(|n| n.min(64)), 0, &mut out)?;
    Ok(out)
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn space(indent: Option<usize>, depth: usize, flat: &str, out: &mut String) {
    match indent {
        None => out.push_str(flat),
        Some(n) => {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', n * depth));
        }
    }
}

fn write(
    value: &Value,
    indent: Option<usize>,
    depth: usize,
    out: &mut String,
) -> Result<(), Error> {
    let unwritable = |why: &str| Error::new(ErrorKind::BadSerialization, format!("tojson: {why}"));
    if depth > DEEPEST {
        return Err(unwritable("the value is nested too deep"));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&value.to_string()),
        ValueKind::String => string(value.as_str().unwrap_or_default(), out),
        ValueKind::Seq | ValueKind::Iterable => {
            let mut empty = true;
            out.push('[');
            for item in value.try_iter()? {
                if !empty {
                    out.push(',');
                }
                space(indent, depth + 1, if empty { "" } else { " " }, out);
                write(&item, indent, depth + 1, out)?;
                empty = false;
            }
            if !empty {
                space(indent, depth, "", out);
            }
            out.push(']');
        }
        ValueKind::Map => {
            let mut empty = true;
            out.push('{');
            for key in value.try_iter()? {
                if !empty {
                    out.push(',');
                }
                space(indent, depth + 1, if empty { "" } else { " " }, out);
                string(&key.to_string(), out);
                out.push_str(": ");
                write(&value.get_item(&key)?, indent, depth + 1, out)?;
                empty = false;
            }
            if !empty {
                space(indent, depth, "", out);
            }
            out.push('}');
        }
        other => return Err(unwritable(&format!("{other} cannot be written as JSON"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_python_writes_them() {
        let inner = Value::from_pairs([("b", Value::from(true)), ("ä<", Value::from(()))]);
        let value: Value = [
            Value::from(1),
            Value::from("a\"\n\u{1}"),
            inner,
            Value::from(1.5),
        ]
        .into_iter()
        .collect();
        let flat = dumps(&value, None).expect("writable");
        assert_eq!(flat, r#"[1, "a\"\n\u0001", {"b": true, "ä<": null}, 1.5]"#);
        let empty: Value = Vec::<Value>::new().into_iter().collect();
        let value = Value::from_pairs([("x", empty), ("y", Value::from(2))]);
        assert_eq!(
            dumps(&value, Some(2)).expect("writable"),
            "{\n  \"x\": [],\n  \"y\": 2\n}"
        );
        assert!(dumps(&Value::UNDEFINED, None).is_err());
    }
}
