//! Formats numbers: bytes, counts, layers, sizes per device.

use std::fmt::Write;

use tpc_diag::steers;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Formats bytes: `4.58 GiB`.
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
    if x < 9.995 {
        format!("{x:.2} {unit}")
    } else if x < 99.95 {
        format!("{x:.1} {unit}")
    } else {
        format!("{x:.0} {unit}")
    }
}

/// Formats billions and millions: `8.03 B`, `751.6 M`.
pub fn count(n: u64) -> String {
    match n {
        1_000_000_000.. => format!("{:.2} B", n as f64 / 1e9),
        1_000_000.. => format!("{:.1} M", n as f64 / 1e6),
        _ => n.to_string(),
    }
}

/// Formats tokens per second with three digits: `184`, `5.31`, `4400`.
pub fn speed(tps: f64) -> String {
    if tps < 9.995 {
        return format!("{tps:.2}");
    }
    if tps < 99.95 {
        return format!("{tps:.1}");
    }
    let digits = (tps.max(1.0).log10() + 1e-9).floor() as i32 - 2;
    let unit = 10_f64.powi(digits);
    format!("{:.0}", (tps / unit).round() * unit)
}

/// Formats runs of an ascending list: `0-31`, `0, 2, 5-7`.
pub fn span(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let run = |run: &[u32]| match run {
        [first, .., last] => format!("{first}-{last}"),
        [one] => one.to_string(),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

/// Formats a size per device: `8 × 512`, `640 · 768 · 640`. More than four different sizes become a range: `352 to
/// 384`.
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

/// Formats an item per device, equal items once: `4 × 25 MiB`, `30 MiB · 20 MiB`.
pub fn equal(shown: &[String]) -> String {
    match shown {
        [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|x| x == first) => {
            format!("{} × {first}", shown.len())
        }
        _ => shown.join(" · "),
    }
}

/// Counts the terminal columns of a text.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Splits a text after the longest prefix of at most `columns` columns.
pub fn split_at_column(text: &str, columns: usize) -> (&str, &str) {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, c)| {
        taken += c.width().unwrap_or(0);
        taken > columns
    });
    text.split_at(end.map_or(text.len(), |(at, _)| at))
}

/// Shortens a text to at most `width` columns, with `…` at the end.
pub fn shortened(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let (start, _) = split_at_column(text, width.saturating_sub(1));
    format!("{start}…")
}

/// Replaces control characters, which file names may contain.
pub fn printable(text: &str) -> String {
    let shown = |c: char| if steers(c) { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// Wraps `text` to `width` columns, and indents all lines but the first by `indent`. Cuts words that are longer than a
/// line.
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let own = line.len() - line.trim_start().len();
        let mut column = own;
        out.push_str(&line[..own]);
        let next = own.max(indent).min(width.saturating_sub(1));
        for (i, word) in line.trim_start().split(' ').enumerate() {
            let space = usize::from(i > 0);
            if i > 0 && column + space + columns(word) > width {
                let _ = write!(out, "\n{:1$}", "", next);
                column = next;
            } else if i > 0 {
                out.push(' ');
                column += 1;
            }
            let (mut rest, mut left) = (word, columns(word));
            while column + left > width {
                let (start, after) = split_at_column(rest, width.saturating_sub(column).max(1));
                // A character wider than the line is not cut.
                if start.is_empty() {
                    break;
                }
                let _ = write!(out, "{start}\n{:1$}", "", next);
                left = left.saturating_sub(columns(start));
                (rest, column) = (after, next);
            }
            out.push_str(rest);
            column += left;
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
        assert_eq!(bytes(10_735_000_000), "10.0 GiB");
        let speeds = [0.4567, 9.999, 31.26, 99.96, 184.4, 999.6, 4404.0, 13_579.0].map(speed);
        assert_eq!(
            speeds,
            [
                "0.46", "10.0", "31.3", "100", "184", "1000", "4400", "13600"
            ]
        );
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
        assert_eq!(wrapped("a bcdefgh", 4, 1), "a\n bcd\n efg\n h\n");
        assert_eq!(wrapped("模型模型", 4, 0), "模型\n模型\n");
        let long = wrapped(&"n".repeat(4_000_000), 100, 2);
        assert_eq!(
            long.lines().count(),
            1 + (4_000_000_usize - 100).div_ceil(98)
        );
    }

    #[test]
    fn long_texts_end_with_an_ellipsis() {
        assert_eq!(shortened("abcd", 4), "abcd");
        assert_eq!(shortened("abcde", 4), "abc…");
        assert_eq!(shortened("模型模型", 5), "模型…");
        assert_eq!(printable("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(printable("a\u{202e}b\u{200b}"), "a\u{fffd}b\u{fffd}");
    }
}
