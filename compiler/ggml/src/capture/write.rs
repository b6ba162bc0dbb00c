use std::fmt::Write;

use super::record::Record;

/// Returns a capture with these records, one JSON object per line. Ids are positions.
pub fn write(records: &[Record]) -> String {
    let mut out = String::new();
    for (id, t) in records.iter().enumerate() {
        let src: Vec<i64> = t.src.iter().map(|s| s.map_or(-1, |s| s as i64)).collect();
        let view = if t.is_view { t.root as i64 } else { -1 };
        let flags = u8::from(t.is_input) + 2 * u8::from(t.is_output);
        let name = serde_json::Value::from(t.name.as_str());
        let op = serde_json::Value::from(t.op.name());
        let (ne, nb, params) = (t.layout.ne, t.layout.nb, &t.words);
        let (dtype, offset) = (t.dtype, t.layout.offset);
        let role = t
            .role
            .map_or_else(String::new, |r| format!(",\"role\":\"{}\"", r.word()));
        let also = match t.also.as_slice() {
            [] => String::new(),
            sizes => format!(",\"also\":{sizes:?}"),
        };
        let _ = writeln!(
            out,
            "{{\"id\":{id},\"name\":{name},\"op\":{op},\"type\":\"{dtype}\",\"ne\":{ne:?},\"nb\":{nb:?},\
             \"params\":{params:?},\"src\":{src:?},\"view\":{view},\"view_offs\":{offset},\"flags\":{flags}{role}{also}}}"
        );
    }
    out
}
