use super::CommandLine;

pub(super) fn read(line: &str) -> CommandLine {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    CommandLine::parse(&words).expect(line)
}
