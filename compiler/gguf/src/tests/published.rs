//! Reads the header skeletons of published models, if present.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::GgufFile;

fn tensor_counts(readme: &str) -> BTreeMap<&str, usize> {
    readme
        .lines()
        .filter_map(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let name = cells.next().filter(|name| name.ends_with(".gguf"))?;
            Some((name, cells.nth(2)?.parse().ok()?))
        })
        .collect()
}

#[test]
fn every_published_header_reads() {
    let folder = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/models"
    ));
    let Ok(readme) = std::fs::read_to_string(folder.join("README.md")) else {
        return;
    };
    let counts = tensor_counts(&readme);
    assert!(!counts.is_empty(), "the README's table is found");
    for (name, &tensors) in &counts {
        let file = GgufFile::open(folder.join(name)).unwrap();
        assert!(!file.has_data());
        let shard =
            super::super::SplitName::parse(name).map_or(0, |split| split.number as usize - 1);
        let here = file
            .header()
            .tensors()
            .iter()
            .filter(|t| t.shard == shard)
            .count();
        assert_eq!(here, tensors, "{name}");
        let metadata = file.header().metadata();
        let architecture = metadata.require_str("general.architecture").unwrap();
        let layers = metadata
            .require_u32(&format!("{architecture}.block_count"))
            .unwrap() as usize;
        let heads =
            metadata.require_u32_per_layer(&format!("{architecture}.attention.head_count"), layers);
        assert_eq!(heads.unwrap().len(), layers, "{name}");
    }
}
