use super::{kept, packed, parts, read, refuses};
use crate::archive;
use crate::{ALIGNMENT, Artefact, MAIN, Manifest};

fn with_kernels() -> Artefact {
    let (mut manifest, program) = kept().into_parts();
    manifest.sections = Manifest::section_versions(true);
    let artefact = Artefact::new(manifest, program).unwrap();
    artefact
        .with_kernels(crate::kernels::tests::modules())
        .unwrap()
}

#[test]
fn kernels_are_entries_at_pages() {
    let artefact = with_kernels();
    let bytes = artefact.to_bytes().unwrap();
    assert_eq!(read(&bytes).unwrap(), artefact);
    let sections = crate::sections(&bytes).unwrap();
    let names: Vec<&str> = sections.iter().map(|s| s.name.as_str()).collect();
    let expected = [
        "manifest.ron",
        MAIN,
        "kernels/index.ron",
        "kernels/sm_80/matmul.cubin",
        "kernels/sm_80/norm.cubin",
        "kernels/sm_90a/matmul.cubin",
    ];
    assert_eq!(names, expected);
    assert!(sections.iter().all(|s| s.offset % ALIGNMENT == 0));
    let mut damaged = bytes.clone();
    damaged[sections[5].offset + 60] ^= 1;
    refuses(&damaged, "TPC0580", "checksum");
}

#[test]
fn kernels_that_nobody_told_of_are_refused() {
    let artefact = with_kernels();
    let bytes = artefact.to_bytes().unwrap();
    let entries = archive::read(&bytes).unwrap();
    let entries: Vec<(&str, &[u8])> = entries.iter().map(|e| (e.name, e.data)).collect();
    let (plain, _) = parts();
    let untold: Vec<(&str, &[u8])> = [("manifest.ron", plain.as_bytes())]
        .into_iter()
        .chain(entries[1..].iter().copied())
        .collect();
    refuses(&packed(&untold), "TPC0581", "no other entry");
    refuses(&packed(&entries[..2]), "TPC0581", "no other entry");
    refuses(&packed(&entries[..5]), "TPC0591", "the index has 3 modules");
    let mut text: Vec<(&str, &[u8])> = entries.clone();
    text[3].1 = b"text";
    refuses(&packed(&text), "TPC0591", "bytes");
    let newer = String::from_utf8(entries[0].1.to_vec()).unwrap();
    let at = newer.find("\"kernels\"").unwrap();
    let newer = format!(
        "{}{}",
        &newer[..at],
        newer[at..].replacen("version: 2", "version: 3", 1)
    );
    let mut later = entries.clone();
    later[0].1 = newer.as_bytes();
    refuses(&packed(&later), "TPC0582", "section `kernels` has format 3");
    kept()
        .with_kernels(crate::kernels::tests::modules())
        .unwrap_err();
}
