//! Numbers as text for people: bytes, counts, layers, sizes per device.

use std::fmt::Write;

/// `4.58 GiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut x = n as f64;
    let mut unit = "";
    for u in UNITS {
        x /= 1024.0;
        unit = u;
        if x < 1024.0 {
            break;
        }
    }
    if x < 10.0 {
        format!("{x:.2} {unit}")
    } else if x < 100.0 {
        format!("{x:.1} {unit}")
    } else {
        format!("{x:.0} {unit}")
    }
}

/// `8.03 B`, `751.6 M`: billions and millions.
pub fn count(n: u64) -> String {
    match n {
        1_000_000_000.. => format!("{:.2} B", n as f64 / 1e9),
        1_000_000.. => format!("{:.1} M", n as f64 / 1e6),
        _ => n.to_string(),
    }
}

/// `0-31`, `0, 2, 5-7`: the runs of consecutive numbers in an ascending list.
pub fn span(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let run = |run: &[u32]| match run {
        [first, .., last] => format!("{first}-{last}"),
        [one] => one.to_string(),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

/// `8 × 512`, `640 · 768 · 640`: a size per device; for more than four different ones `352 to 384`.
pub fn lens(lens: &[u64]) -> String {
    let (least, most) = (lens.iter().min(), lens.iter().max());
    match (least, most) {
        (Some(least), Some(most)) if lens.len() > 4 && least < most => format!("{least} to {most}"),
        _ => {
            let shown: Vec<String> = lens.iter().map(ToString::to_string).collect();
            equal(&shown)
        }
    }
}

/// `4 × 25 MiB`, `30 MiB · 20 MiB`: an item per device, equal ones once.
pub fn equal(shown: &[String]) -> String {
    match shown {
        [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|x| x == first) => {
            format!("{} × {first}", shown.len())
        }
        _ => shown.join(" · "),
    }
}

/// `text` in lines of at most `width` columns; all but the first are indented by `indent`.
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let own = line.len() - line.trim_start().len();
        let mut column = own;
        out.push_str(&line[..own]);
        for (i, word) in line.trim_start().split(' ').enumerate() {
            let len = word.chars().count();
            if i > 0 && column + 1 + len > width {
                let _ = write!(out, "\n{:1$}", "", own.max(indent));
                column = own.max(indent);
            } else if i > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += len;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(4_912_898_304), "4.58 GiB");
        assert_eq!(span(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(span(&[]), "");
        assert_eq!(lens(&[512; 8]), "8 × 512");
        assert_eq!(lens(&[3, 5]), "3 · 5");
        assert_eq!(lens(&[7]), "7");
        assert_eq!(lens(&[]), "");
        assert_eq!(lens(&[1, 2, 3, 4, 9]), "1 to 9");
    }

    #[test]
    fn long_lines_break_between_words() {
        assert_eq!(wrapped("  one two three", 10, 4), "  one two\n    three\n");
        assert_eq!(wrapped("a\nb", 10, 4), "a\nb\n");
    }
}
