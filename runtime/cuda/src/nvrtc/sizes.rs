use std::collections::BTreeMap;

fn bytes<const N: usize>(file: &[u8], at: u64) -> Option<[u8; N]> {
    let at = usize::try_from(at).ok()?;
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn read_u16(file: &[u8], at: u64) -> Option<u64> {
    bytes(file, at).map(|b| u64::from(u16::from_le_bytes(b)))
}

fn read_u32(file: &[u8], at: u64) -> Option<u64> {
    bytes(file, at).map(|b| u64::from(u32::from_le_bytes(b)))
}

fn read_u64(file: &[u8], at: u64) -> Option<u64> {
    bytes(file, at).map(u64::from_le_bytes)
}

fn text(file: &[u8], at: u64) -> Option<&str> {
    let rest = file.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|b| *b == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

fn header(file: &[u8], number: u64) -> Option<u64> {
    let (table, size) = (read_u64(file, 0x28)?, read_u16(file, 0x3a)?);
    table.checked_add(size.checked_mul(number)?)
}

/// Returns the code size of each kernel in bytes, from the sections `.text.NAME` of an ELF file; empty for other files.
pub(super) fn sizes(file: &[u8]) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    let count = read_u16(file, 0x3c).unwrap_or(0);
    let names = read_u16(file, 0x3e).and_then(|n| read_u64(file, header(file, n)? + 0x18));
    for number in 0..count {
        let section = || {
            let at = header(file, number)?;
            let name = text(file, names?.checked_add(read_u32(file, at)?)?)?;
            let kernel = name.strip_prefix(".text.")?;
            Some((kernel.to_owned(), read_u64(file, at.checked_add(0x20)?)?))
        };
        out.extend(section());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_measured_by_its_sections() {
        let mut file = vec![0; 0x40];
        file[0x28] = 0x60;
        file[0x3a] = 64;
        file[0x3c] = 3;
        file[0x3e] = 1;
        file.extend(b"\0.text.k\0.names\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        file.resize(0x60 + 3 * 64, 0);
        let section = |file: &mut [u8], n: usize, name: u8, at: u8, size: u8| {
            let head = &mut file[0x60 + n * 64..];
            (head[0], head[0x18], head[0x20]) = (name, at, size);
        };
        section(&mut file, 1, 9, 0x40, 0x20);
        section(&mut file, 2, 1, 0, 0x80);
        assert_eq!(sizes(&file), BTreeMap::from([("k".to_owned(), 0x80)]));
        for n in 0..file.len() {
            sizes(&file[..n]);
            let mut changed = file.clone();
            changed[n] = 0xff;
            sizes(&changed);
        }
    }
}
