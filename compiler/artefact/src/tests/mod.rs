mod kernels;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tpc_ir::random::SplitMix64;

use tpc_ir::program::StorageFormat;

use crate::archive::{self, Entry};
use crate::{ALIGNMENT, Artefact, ArtefactError, Digest, MAIN, Manifest, codes};

/// A stored artefact. Later versions must read it or reject it with a diagnostic.
const KEPT: &[u8] = include_bytes!("../../../../tests/data/artefacts/format-1.tpc");

const SLOWEST: Duration = Duration::from_secs(2);

fn read(bytes: &[u8]) -> Result<Artefact, ArtefactError> {
    Artefact::read(bytes, &[StorageFormat::of_granules("rows16")])
}

fn kept() -> Artefact {
    read(KEPT).unwrap_or_else(|e| panic!("{e}"))
}

fn parts() -> (String, String) {
    let entries = archive::read(KEPT).unwrap();
    let text = |i: usize| String::from_utf8(entries[i].data.to_vec()).unwrap();
    (text(0), text(1))
}

fn packed(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let entries: Vec<Entry<'_>> = entries
        .iter()
        .map(|&(name, data)| Entry { name, data })
        .collect();
    let mut out = Vec::new();
    archive::write(&mut out, &entries).unwrap();
    out
}

fn of(manifest: &str, program: &str) -> Vec<u8> {
    packed(&[
        ("manifest.ron", manifest.as_bytes()),
        (MAIN, program.as_bytes()),
    ])
}

#[track_caller]
fn refuses(bytes: &[u8], code: &str, said: &str) {
    let e = read(bytes).expect_err(said);
    assert_eq!(e.code().id, code, "{e}");
    assert!(e.to_string().contains(said), "{said}: {e}");
    assert!(!e.help().is_empty());
}

#[test]
fn an_artefact_of_format_1_is_what_it_was() {
    let artefact = kept();
    assert_eq!(artefact.manifest().format, 1);
    assert_eq!(artefact.to_bytes().unwrap(), KEPT);
    let (manifest, program) = parts();
    assert_eq!(of(&manifest, &program), KEPT);
    assert_eq!(
        Manifest::parse(manifest.as_bytes()).as_ref(),
        Ok(artefact.manifest())
    );
}

#[test]
fn data_begin_at_pages_and_ordinary_tools_read_them() {
    let entries = archive::read(KEPT).unwrap();
    let at = |data: &[u8]| data.as_ptr().addr() - KEPT.as_ptr().addr();
    assert!(entries.iter().all(|e| at(e.data).is_multiple_of(ALIGNMENT)));
    // Read with rawzip alone, without this crate's checks.
    let zip = rawzip::ZipArchive::from_slice(KEPT).unwrap();
    let names: Vec<Vec<u8>> = zip
        .entries()
        .map(|e| e.unwrap().file_path().as_bytes().to_vec())
        .collect();
    assert_eq!(names, [b"manifest.ron".to_vec(), MAIN.as_bytes().to_vec()]);
}

#[test]
fn format_1_has_no_bits_and_format_2_keeps_them() {
    let (manifest, program) = parts();
    let bits = |text: &str| read(&of(text, &program)).unwrap().manifest().bits.clone();
    let with = |bits: &str| manifest.replacen("format: 1,", &format!("format: 2,\n    {bits},"), 1);
    assert_eq!(bits(&manifest), None);
    assert_eq!(bits(&with("bits: Some(\"same\")")).as_deref(), Some("same"));
    let control = with("bits: Some(\"a\\u{7}\")");
    refuses(&of(&control, &program), "TPC0581", "control");
}

#[test]
fn newer_formats_are_refused_by_their_number() {
    let (manifest, program) = parts();
    let newer = manifest.replacen("format: 1,", "format: 3,\n    colour: \"red\",", 1);
    refuses(&of(&newer, &program), "TPC0582", "format 3");
    let section = manifest.replacen("version: 1", "version: 7", 1);
    refuses(
        &of(&section, &program),
        "TPC0582",
        "section `programs` has format 7",
    );
    let unknown = manifest.replacen("\"programs\",", "\"pictures\",", 1);
    refuses(&of(&unknown, &program), "TPC0582", "section `pictures`");
    let colour = manifest.replacen("format: 1,", "format: 1,\n    colour: \"red\",", 1);
    refuses(&of(&colour, &program), "TPC0581", "colour");
    refuses(&of("", &program), "TPC0581", "manifest.ron");
    refuses(
        &of(&"(".repeat(100_000), &program),
        "TPC0581",
        "manifest.ron",
    );
}

#[test]
fn a_manifest_that_contradicts_the_program_is_refused() {
    let (manifest, program) = parts();
    for (field, from, to) in [
        ("devices", "devices: [", "devices: [\n        \"more\","),
        ("options.ubatch", "ubatch: ", "ubatch: 1"),
        ("options.caches.context", "context: ", "context: 1"),
        ("options.parallel", "parallel: ", "parallel: 1"),
    ] {
        let changed = manifest.replacen(from, to, 1);
        assert_ne!(changed, manifest, "{from}");
        refuses(&of(&changed, &program), "TPC0581", field);
    }
    for name in [
        "../up.gguf",
        "/etc/passwd",
        "a\\\\b.gguf",
        "..",
        "C:x.gguf",
        "",
    ] {
        let file = manifest.find("files: [").unwrap();
        let begin = file + manifest[file..].find('"').unwrap() + 1;
        let end = begin + manifest[begin..].find('"').unwrap();
        let changed = format!("{}{name}{}", &manifest[..begin], &manifest[end..]);
        refuses(&of(&changed, &program), "TPC0581", "without folders");
    }
}

#[test]
fn programs_are_verified() {
    let (manifest, program) = parts();
    let launch = program
        .lines()
        .find(|l| l.starts_with("launch l3 "))
        .unwrap();
    let without = program.replacen(&format!("{launch}\n"), "", 1);
    refuses(&of(&manifest, &without), "TPC0583", "TPC02");
    refuses(&of(&manifest, ""), "TPC0583", "line 1");
    let queue = program.lines().find(|l| l.starts_with("queue ")).unwrap();
    let swapped = queue.replacen("l1, l2", "l2, l1", 1);
    let swapped = program.replacen(queue, &swapped, 1);
    if swapped != program {
        refuses(&of(&manifest, &swapped), "TPC0583", "TPC027");
    }
    let mut bytes = manifest.clone().into_bytes();
    bytes.push(0xff);
    let file = packed(&[("manifest.ron", &bytes), (MAIN, program.as_bytes())]);
    refuses(&file, "TPC0581", "UTF-8");
}

#[test]
fn other_entries_are_refused() {
    let (manifest, program) = parts();
    let main = (MAIN, program.as_bytes());
    let first = ("manifest.ron", manifest.as_bytes());
    refuses(&packed(&[first]), "TPC0581", "programs");
    refuses(&packed(&[main, first]), "TPC0580", "first entry");
    refuses(
        &packed(&[first, main, ("programs/b.program", b"")]),
        "TPC0581",
        "programs/b.program",
    );
    refuses(&packed(&[]), "TPC0580", "first entry");
    refuses(b"", "TPC0580", "not a zip archive");
    refuses(b"GGUF", "TPC0580", "not a zip archive");
    let mut behind = KEPT.to_vec();
    behind.push(0);
    assert!(read(&behind).is_err());
    let mut before = vec![0; 4096];
    before.extend(KEPT);
    assert!(read(&before).is_err());
}

struct Records {
    local: Vec<usize>,
    central: Vec<usize>,
    end: usize,
}

fn records(bytes: &[u8]) -> Records {
    let find = |magic: &[u8]| -> Vec<usize> {
        let windows = bytes.windows(4).enumerate();
        windows
            .filter(|(_, w)| *w == magic)
            .map(|(i, _)| i)
            .collect()
    };
    Records {
        local: find(b"PK\x03\x04"),
        central: find(b"PK\x01\x02"),
        end: find(b"PK\x05\x06")[0],
    }
}

#[test]
fn what_hides_in_archives_is_refused() {
    let found = records(KEPT);
    let [first, second] = found.central[..] else {
        panic!()
    };
    let change = |at: usize, with: &[u8]| {
        let mut bytes = KEPT.to_vec();
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    // Fields of the central directory: offset in the record, new bytes, expected error.
    for (at, with, said) in [
        (8, &[1, 0][..], "encrypted"),
        (10, &[8, 0], "compressed"),
        (16, &[0, 0, 0, 0], "checksum"),
        (20, &[1, 0, 0, 0], "two sizes"),
        (38, &(0o120_777_u32 << 16).to_le_bytes(), "symbolic link"),
        (42, &[0, 0, 0, 0], "overlap"),
        (42, &[0xf0, 0xff, 0xff, 0x7f], "not within the file"),
        (46, b"/rogram", "absolute"),
        (46, b"../../x", "leaves"),
        (46, b"a//b/./", "leaves"),
        (46, b"PROGRAM", "lower-case"),
    ] {
        refuses(&change(second + at, with), "TPC0580", said);
    }
    // Both size fields point beyond the file.
    let mut huge = change(second + 20, &[0xff, 0xff, 0xff, 0x7f]);
    huge[second + 24..second + 28].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f]);
    refuses(&huge, "TPC0580", "not within the file");
    // Two entries with one name.
    let mut twice = KEPT.to_vec();
    let length = u16::from_le_bytes([twice[first + 28], twice[first + 29]]);
    assert_eq!(usize::from(length), "manifest.ron".len());
    let record = twice[first..first + 46 + 12].to_vec();
    let end = found.end;
    let directory = [record.clone(), record].concat();
    twice.splice(first..end, directory.iter().copied());
    let end = first + directory.len();
    twice[end + 12..end + 16].copy_from_slice(&(directory.len() as u32).to_le_bytes());
    refuses(&twice, "TPC0580", "twice");
    // Local headers that differ from the directory.
    for at in found
        .local
        .iter()
        .flat_map(|l| [l + 6, l + 10, l + 14, l + 18, l + 28, l + 30])
    {
        assert!(read(&change(at, &[0x7e])).is_err(), "{at}");
    }
    // The end record.
    for at in 4..22 {
        assert!(read(&change(found.end + at, &[0x5c])).is_err(), "{at}");
    }
}

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

#[test]
fn truncated_files_are_refused() {
    for len in 0..KEPT.len() {
        let e = read(&KEPT[..len]).expect_err("it is not whole");
        assert_eq!(e.code(), &codes::DAMAGED, "{len}: {e}");
    }
}

#[test]
fn changed_bytes_are_refused() {
    let mut random = Random(SplitMix64::new(1));
    for _ in 0..4000 {
        let mut bytes = KEPT.to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        if bytes != KEPT {
            let e = read(&bytes).expect_err("a byte is another");
            assert!(!e.to_string().is_empty());
        }
    }
}

fn mutated(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(2) {
        let (at, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(6) {
            0 => {
                lines.remove(at);
            }
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => {
                let words: Vec<&str> = lines[at].split(' ').collect();
                let number = random.below(words.len());
                let with = random.pick(&[
                    "0",
                    "1",
                    "18446744073709551615",
                    "4294967296",
                    "-1",
                    "@host",
                    "@dev1",
                    "@dev63",
                    "l0",
                    "v0",
                    "b1",
                    "a0",
                    "[",
                    "]",
                    "n_tokens",
                    "n_ctx*n_ctx*n_ctx*n_ctx",
                    "\"",
                    "=",
                    "rows16",
                    "states",
                    "{",
                    "store",
                    "transfer",
                    "99999999",
                    ";",
                ]);
                let changed = words
                    .iter()
                    .enumerate()
                    .map(|(i, w)| if i == number { with } else { w });
                lines[at] = changed.collect::<Vec<_>>().join(" ");
            }
            4 => {
                let line = std::mem::take(&mut lines[at]);
                let digits: Vec<usize> = line
                    .char_indices()
                    .filter(|(_, c)| c.is_ascii_digit())
                    .map(|(i, _)| i)
                    .collect();
                lines[at] = match digits.as_slice() {
                    [] => line,
                    all => {
                        let i = all[random.below(all.len())];
                        format!("{}{}{}", &line[..i], random.below(100), &line[i + 1..])
                    }
                };
            }
            _ => {
                let line = &mut lines[at];
                let cut = line
                    .char_indices()
                    .map(|(i, _)| i)
                    .nth(random.below(line.len()))
                    .unwrap_or(0);
                line.truncate(cut);
            }
        }
        if lines.is_empty() {
            return String::new();
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn changed_texts_are_refused_or_verified() {
    let (manifest, program) = parts();
    let mut random = Random(SplitMix64::new(2));
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..6000 {
        let file = match random.below(4) {
            0 => of(&mutated(&manifest, &mut random), &program),
            1 => of(
                &mutated(&manifest, &mut random),
                &mutated(&program, &mut random),
            ),
            _ => of(&manifest, &mutated(&program, &mut random)),
        };
        let begun = Instant::now();
        let found = read(&file);
        assert!(begun.elapsed() < SLOWEST);
        match found {
            Err(e) => {
                assert!(!e.to_string().is_empty() && !e.help().is_empty());
                *seen.entry(e.code().id).or_default() += 1;
            }
            Ok(artefact) => {
                let again = artefact.to_bytes().unwrap();
                assert_eq!(read(&again).as_ref(), Ok(&artefact));
                *seen.entry("accepted").or_default() += 1;
            }
        }
    }
    assert!(seen["TPC0581"] > 500 && seen["TPC0583"] > 2000, "{seen:?}");
}

#[test]
fn hashes_are_known_and_have_one_text() {
    // The hash of "abc" in FIPS 180-4.
    let known = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(Digest::of(b"abc").to_string(), known);
    assert_eq!(Digest::parse(known), Some(Digest::of(b"abc")));
    for wrong in [
        "",
        "sha256:",
        &known[..70],
        &known.to_uppercase(),
        "md5:00",
        &format!("{known}0"),
    ] {
        assert_eq!(Digest::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn every_kind_of_defect_has_its_code() {
    let e = ArtefactError::UnknownSection("x".to_owned());
    let d = e.diagnostic("m.tpc");
    assert_eq!((d.code, d.help.is_some()), (&codes::NEWER, true));
}
