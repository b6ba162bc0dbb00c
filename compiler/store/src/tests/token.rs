//! The places of the hub's token.

use std::ffi::OsString;

use super::Scratch;
use crate::hub_token;

#[test]
fn tokens_are_where_huggingface_hub_has_them() {
    let s = Scratch::new();
    s.write("home/.cache/huggingface/token", "of-home\n");
    s.write("hf/token", " of-hf-home ");
    s.write("other", "of-path");
    s.write("empty/token", "\n");
    let of = |variables: &[(&str, &str)]| {
        hub_token(|name| {
            let (_, value) = variables.iter().find(|(n, _)| *n == name)?;
            Some(match value.strip_prefix("@") {
                Some(file) => s.path(file).into_os_string(),
                None => OsString::from(*value),
            })
        })
    };
    let home = ("HOME", "@home");
    for (variables, expected) in [
        (&[("HF_TOKEN", "own"), home][..], Some("own")),
        (&[("HUGGING_FACE_HUB_TOKEN", "older"), home], Some("older")),
        (&[("HF_TOKEN", ""), home], Some("of-home")),
        (&[home], Some("of-home")),
        (&[("HF_HOME", "@hf"), home], Some("of-hf-home")),
        (&[("XDG_CACHE_HOME", "@home/.cache")], Some("of-home")),
        (&[("HF_TOKEN_PATH", "@other"), home], Some("of-path")),
        (&[("HF_HOME", "@empty"), home], None),
        // A folder is not a token.
        (&[("HF_TOKEN_PATH", "@home"), home], None),
        (&[("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"), home], None),
        (
            &[("HF_HUB_DISABLE_IMPLICIT_TOKEN", "0"), home],
            Some("of-home"),
        ),
        (&[], None),
    ] {
        assert_eq!(of(variables).as_deref(), expected, "{variables:?}");
    }
}
