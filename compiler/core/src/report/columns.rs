use crate::format::{columns, shortened};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// Left-aligned words, which are shortened first on a narrow terminal.
    Left,
    Right,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<String>),
    Heading(String),
}

#[derive(Clone, Debug)]
pub(super) struct Columns {
    aligns: Vec<Align>,
    rows: Vec<Row>,
}

const GAP: usize = 2;
const WORDS: usize = 6;

impl Columns {
    pub(super) fn new(header: &[(&str, Align)]) -> Columns {
        let cells = header.iter().map(|(name, _)| (*name).to_owned()).collect();
        Columns {
            aligns: header.iter().map(|(_, align)| *align).collect(),
            rows: vec![Row::Cells(cells)],
        }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(Row::Cells(cells));
    }

    pub(super) fn heading(&mut self, text: String) {
        self.rows.push(Row::Heading(text));
    }

    pub(super) fn without_columns(&mut self, of: &[&str], empty: impl Fn(&str) -> bool) {
        let Some(Row::Cells(header)) = self.rows.first() else {
            return;
        };
        let cells = || {
            self.rows.iter().skip(1).filter_map(|r| match r {
                Row::Cells(cells) => Some(cells),
                Row::Heading(_) => None,
            })
        };
        let kept: Vec<bool> = (0..header.len())
            .map(|c| {
                let all = || cells().all(|r| r.get(c).is_none_or(|cell| empty(cell)));
                !(of.contains(&header[c].as_str()) && all())
            })
            .collect();
        let keep = |c: &mut usize| {
            *c += 1;
            kept.get(*c - 1).copied().unwrap_or(true)
        };
        let mut at = 0;
        self.aligns.retain(|_| keep(&mut at));
        for row in &mut self.rows {
            if let Row::Cells(cells) = row {
                let mut at = 0;
                cells.retain(|_| keep(&mut at));
            }
        }
    }

    fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths = vec![0; self.aligns.len()];
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                for (w, cell) in widths.iter_mut().zip(cells) {
                    *w = columns(cell).max(*w);
                }
            }
        }
        let gaps = 1 + GAP * widths.len().saturating_sub(1);
        // Shorten words first, then all columns: the widest column loses one place at a time.
        for (left_only, least) in [(true, WORDS), (false, 1)] {
            while widths.iter().sum::<usize>() + gaps > width {
                let shrinkable = widths.iter_mut().zip(&self.aligns);
                let shrinkable = shrinkable
                    .filter(|(w, a)| **w > least && (!left_only || **a == Align::Left))
                    .map(|(w, _)| w);
                match shrinkable.max_by_key(|w| **w) {
                    Some(widest) => *widest -= 1,
                    None => break,
                }
            }
        }
        widths
    }

    /// Formats the table in lines of at most `width` columns, each with a leading blank.
    pub(super) fn render(&self, width: usize) -> String {
        let widths = self.widths(width);
        let mut out = String::new();
        for row in &self.rows {
            let line = match row {
                Row::Heading(text) => crate::format::wrapped(text, width.saturating_sub(1), 2),
                Row::Cells(cells) => self.line(cells, &widths),
            };
            for line in line.lines() {
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
        out
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::from(" ");
        for (c, ((cell, align), &width)) in cells.iter().zip(&self.aligns).zip(widths).enumerate() {
            if c > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = shortened(cell, width);
            let blanks = " ".repeat(width.saturating_sub(columns(&cell)));
            match align {
                Align::Left => line.extend([cell.as_str(), &blanks]),
                Align::Right => line.extend([blanks.as_str(), &cell]),
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Columns {
        let mut t = Columns::new(&[
            ("place", Align::Left),
            ("state", Align::Right),
            ("total", Align::Right),
        ]);
        t.row(vec!["a long name".into(), "0 B".into(), "12.0 GiB".into()]);
        t.heading("in between".into());
        t.row(vec!["host".into(), "0 B".into(), "1 B".into()]);
        t
    }

    #[test]
    fn rows_are_lines() {
        let mut t = table();
        t.without_columns(&["state"], |c| c == "0 B");
        assert_eq!(
            t.render(40),
            " place           total\n a long name  12.0 GiB\nin between\n host              1 B\n"
        );
        assert_eq!(
            t.render(20),
            " place         total\n a long n…  12.0 GiB\nin between\n host            1 B\n"
        );
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        for width in 12..60 {
            for line in table().render(width).lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }
}
