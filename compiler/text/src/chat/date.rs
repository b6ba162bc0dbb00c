//! Formats times like Python's `strftime`, in UTC.

use std::time::{Duration, SystemTime};

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The days of each month outside leap years.
const LENGTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

struct Day {
    year: u64,
    /// The month; January is 0.
    month: usize,
    day: u64,
    /// The day of the year; 1 January is 1.
    of_year: u64,
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

/// Returns the date `since` days after 1 January 1970.
fn day(since: u64) -> Day {
    // 400 years have 146,097 days.
    let mut year = 1970 + since / 146_097 * 400;
    let mut left = since % 146_097;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let of_year = left + 1;
    let mut month = 0;
    loop {
        let length = LENGTHS[month] + u64::from(month == 1 && is_leap(year));
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    Day {
        year,
        month,
        day: left + 1,
        of_year,
    }
}

/// Formats a time. Keeps unknown directives and other text.
pub(super) fn strftime(now: SystemTime, format: &str) -> String {
    let seconds = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let d = day(days);
    let weekday = DAYS[usize::try_from((days + 4) % 7).unwrap_or(0)];
    let month = MONTHS[d.month];
    let hour12 = match second / 3600 % 12 {
        0 => 12,
        h => h,
    };
    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = rest.next();
        let plain = directive == Some('-');
        if plain {
            directive = rest.next();
        }
        let mut number = |n: u64, width: usize| {
            let width = if plain { 0 } else { width };
            out.push_str(&format!("{n:0width$}"));
        };
        match directive {
            Some('Y') => number(d.year, 4),
            Some('y') => number(d.year % 100, 2),
            Some('m') => number(d.month as u64 + 1, 2),
            Some('d') => number(d.day, 2),
            Some('j') => number(d.of_year, 3),
            Some('H') => number(second / 3600, 2),
            Some('I') => number(hour12, 2),
            Some('M') => number(second / 60 % 60, 2),
            Some('S') => number(second % 60, 2),
            Some('B') => out.push_str(month),
            Some('b' | 'h') => out.push_str(&month[..3]),
            Some('A') => out.push_str(weekday),
            Some('a') => out.push_str(&weekday[..3]),
            Some('p') => out.push_str(if second < 43_200 { "AM" } else { "PM" }),
            Some('Z') => out.push_str("UTC"),
            Some('z') => out.push_str("+0000"),
            Some('F') => out.push_str(&strftime(now, "%Y-%m-%d")),
            Some('T') => out.push_str(&strftime(now, "%H:%M:%S")),
            Some('%') => out.push('%'),
            other => {
                out.push('%');
                out.extend(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_python_writes_them() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(
            strftime(at(0), "%A %d %B %Y %H:%M:%S"),
            "Thursday 01 January 1970 00:00:00"
        );
        assert_eq!(
            strftime(at(1_721_995_200), "%d %b %Y, %a, %j"),
            "26 Jul 2024, Fri, 208"
        );
        assert_eq!(strftime(at(951_782_399), "%F %T"), "2000-02-28 23:59:59");
        assert_eq!(
            strftime(at(951_782_400), "%-d.%-m.%y %I %p %% %q %"),
            "29.2.00 12 AM % %q %"
        );
        assert_eq!(strftime(at(13_569_465_600), "%F"), "2400-01-01");
    }
}
