//! Downloads from a server that speaks the hub's API.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::scope;
use std::time::Duration;

use tpc_diag::Diagnostic;
use tpc_fetch::{Client, Limits, Token};

use super::Scratch;
use super::server::{COMMIT, FakeHub, Faults, sha256};
use crate::{Endpoint, Hub, RemoteModel, Wanted, Watch, download, find};

const LIMITS: Limits = Limits {
    connect: Duration::from_secs(2),
    read: Duration::from_secs(2),
    whole: Duration::from_secs(60),
    redirects: 3,
};

/// Records the calls of a download.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Watch for Log {
    fn begin(&self, file: &str, at: u64, bytes: u64) {
        self.0.lock().unwrap().push(format!("{file} {at} {bytes}"));
    }

    fn advance(&self, _: u64) {}

    fn wait(&self, file: &str) {
        self.0.lock().unwrap().push(format!("{file} waits"));
    }
}

fn model(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i % 251) as u8).collect()
}

fn ask<T>(url: &str, then: impl FnOnce(Hub<'_>) -> Result<T, Diagnostic>) -> Result<T, Diagnostic> {
    let endpoint = Endpoint::from_variables(|name| (name == "HF_ENDPOINT").then(|| url.to_owned()));
    let token = Token::of_hub(&endpoint.api()?, "hf_secret");
    let client = Client::new(LIMITS, token, None)?;
    then(Hub {
        client: &client,
        endpoint: &endpoint,
    })
}

fn remote(url: &str, wanted: &str) -> Result<RemoteModel, Diagnostic> {
    let wanted = Wanted::parse(wanted)?;
    ask(url, |hub| hub.find(&wanted))
}

fn get(hub: &FakeHub, s: &Scratch, wanted: &str) -> Result<(PathBuf, Vec<String>), Diagnostic> {
    let wanted = Wanted::parse(wanted)?;
    ask(&hub.url, |hub| {
        let log = Log::default();
        let model = hub.find(&wanted)?;
        let path = download(hub, &s.path("hub"), &model, &log)?;
        Ok((path, log.0.into_inner().unwrap()))
    })
}

fn one(bytes: &[u8], faults: Faults) -> FakeHub {
    FakeHub::new(&[("n-Q4_K_M.gguf", bytes.to_vec())], faults)
}

#[track_caller]
fn help(d: &Diagnostic) -> String {
    d.help.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn a_model_arrives_in_the_hubs_layout() {
    let (a, b) = (model(3_000_000), model(1000));
    let files = [
        ("BF16/n-BF16-00001-of-00002.gguf", a.clone()),
        ("BF16/n-BF16-00002-of-00002.gguf", b.clone()),
        ("mmproj-n.gguf", model(5)),
    ];
    let hub = FakeHub::new(&files, Faults::default());
    let s = Scratch::new();
    let (path, log) = get(&hub, &s, "u/n:BF16").unwrap();
    let folder = s.path("hub/models--u--n");
    let link = folder.join(format!(
        "snapshots/{COMMIT}/BF16/n-BF16-00001-of-00002.gguf"
    ));
    assert_eq!(path, link);
    let blob = format!("../../../blobs/{}", sha256(&a));
    assert_eq!(fs::read_link(&link).unwrap(), PathBuf::from(blob));
    assert_eq!(fs::read(&link).unwrap(), a);
    assert_eq!(
        fs::read_to_string(folder.join("refs/main")).unwrap(),
        COMMIT
    );
    assert_eq!(fs::read_dir(folder.join("blobs")).unwrap().count(), 2);
    assert_eq!(log.len(), 2, "{log:?}");
    assert_eq!(
        find(&s.stores(), &Wanted::parse("u/n").unwrap()).map(|f| f.path),
        Some(path)
    );
    // Present files are not requested again, and a lost link returns.
    fs::remove_file(&link).unwrap();
    assert_eq!(get(&hub, &s, "u/n:BF16").unwrap(), (link, Vec::new()));
    assert_eq!(hub.downloads().len(), 2);
    // The token is not sent without TLS.
    assert!(hub.requests().iter().all(|r| r.authorization.is_none()));
}

#[test]
fn downloads_resume() {
    let bytes = model(100_000);
    for (present, whole, ranges) in [
        (40_000, false, vec![Some("bytes=40000-".to_owned())]),
        // A server without ranges sends all bytes again.
        (40_000, true, vec![Some("bytes=40000-".to_owned())]),
        (100_000, false, vec![]),
        // A longer file is another file's.
        (100_001, false, vec![None]),
    ] {
        let faults = Faults {
            whole,
            ..Faults::default()
        };
        let (hub, s) = (one(&bytes, faults), Scratch::new());
        let part = model(200_000)[..present].to_vec();
        s.write(
            &format!("hub/models--u--n/blobs/{}.incomplete", sha256(&bytes)),
            part,
        );
        let (path, _) = get(&hub, &s, "u/n").unwrap();
        assert_eq!(fs::read(path).unwrap(), bytes);
        assert_eq!(hub.downloads(), ranges, "{present} {whole}");
    }
}

#[test]
fn cut_connections_continue() {
    let bytes = model(100_000);
    let faults = Faults {
        cuts: (2, 30_000),
        ..Faults::default()
    };
    let (hub, s) = (one(&bytes, faults), Scratch::new());
    let (path, _) = get(&hub, &s, "u/n").unwrap();
    assert_eq!(fs::read(path).unwrap(), bytes);
    let ranges = [
        None,
        Some("bytes=30000-".to_owned()),
        Some("bytes=60000-".to_owned()),
    ];
    assert_eq!(hub.downloads(), ranges);
    // Without progress, the download ends and keeps its bytes.
    let faults = Faults {
        cuts: (99, 0),
        ..Faults::default()
    };
    let (hub, s) = (one(&bytes, faults), Scratch::new());
    let part = format!("hub/models--u--n/blobs/{}.incomplete", sha256(&bytes));
    s.write(&part, &bytes[..7]);
    let d = get(&hub, &s, "u/n").unwrap_err();
    assert_eq!((d.code.id, hub.downloads().len()), ("TPC0452", 3), "{d}");
    assert!(
        d.to_string().contains("7 of 100000") && help(&d).contains("again"),
        "{d}"
    );
    assert_eq!(fs::read(s.path(&part)).unwrap(), &bytes[..7]);
}

#[test]
fn wrong_content_is_deleted() {
    let bytes = model(5000);
    let damaged = Faults {
        damaged: true,
        ..Faults::default()
    };
    let changed = Faults {
        etag: Some("a".repeat(64)),
        ..Faults::default()
    };
    for faults in [damaged, changed] {
        let (hub, s) = (one(&bytes, faults), Scratch::new());
        let d = get(&hub, &s, "u/n").unwrap_err();
        assert_eq!((d.code.id, help(&d).is_empty()), ("TPC0451", false), "{d}");
        let blobs = fs::read_dir(s.path("hub/models--u--n/blobs")).unwrap();
        let sizes: u64 = blobs.map(|e| e.unwrap().metadata().unwrap().len()).sum();
        assert_eq!(sizes, 0);
        assert_eq!(find(&s.stores(), &Wanted::parse("u/n").unwrap()), None);
    }
}

#[test]
fn refusals_have_cures() {
    let with = |status| {
        let faults = Faults {
            status: Some(status),
            ..Faults::default()
        };
        remote(&one(b"x", faults).url, "u/n").unwrap_err()
    };
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let d = with(status);
        assert_eq!(d.code.id, "TPC0431");
        assert!(help(&d).contains("HF_TOKEN"), "{d}: {}", help(&d));
    }
    let d = with("404 Not Found");
    assert!(
        d.code.id == "TPC0431" && help(&d).contains("u/n/tree/main"),
        "{}",
        help(&d)
    );
    assert_eq!(with("503 Busy").code.id, "TPC0431");
    let d = remote("http://127.0.0.1:1", "u/n").unwrap_err();
    assert_eq!(d.code.id, "TPC0432");
    let d = remote("no address", "u/n").unwrap_err();
    assert_eq!(d.code.id, "TPC0430");
}

#[test]
fn a_missing_quantisation_names_the_others() {
    let files = [
        ("n-Q8_0.gguf", model(1)),
        ("n-IQ4_XS.gguf", model(1)),
        ("README.md", model(1)),
    ];
    let hub = FakeHub::new(&files, Faults::default());
    for wanted in ["u/n:Q4_K_M", "u/n/absent.gguf"] {
        let d = remote(&hub.url, wanted).unwrap_err();
        assert_eq!(d.code.id, "TPC0447");
        assert!(help(&d).contains(":IQ4_XS, :Q8_0"), "{}", help(&d));
    }
    let chosen = remote(&hub.url, "u/n").unwrap();
    assert_eq!(
        (chosen.files[0].path.as_str(), chosen.chosen),
        ("n-Q8_0.gguf", true)
    );
}

/// A page of Hugging Face has 1,000 files, and its header names the next page.
#[test]
fn lists_of_files_may_have_several_pages() {
    let files = [
        ("a.txt", model(1)),
        ("b.txt", model(1)),
        ("n-Q8_0-00001-of-00002.gguf", model(1)),
        ("n-Q8_0-00002-of-00002.gguf", model(1)),
        ("z.txt", model(1)),
    ];
    for page in 1..=5 {
        let faults = Faults {
            page,
            ..Faults::default()
        };
        let hub = FakeHub::new(&files, faults);
        let found = remote(&hub.url, "u/n:Q8_0").unwrap();
        assert_eq!(found.files.len(), 2, "{page} files per page");
        let lists = hub.requests();
        let lists = lists.iter().filter(|r| r.path.contains("/tree/"));
        assert_eq!(lists.count(), 5_usize.div_ceil(page));
    }
}

#[test]
fn answers_are_not_trusted() {
    let item = |path: &str, oid: &str, size: u64| {
        format!(
            r#"[{{"type":"file","path":"{path}","size":{size},"oid":"x","lfs":{{"oid":"{oid}","size":{size}}}}}]"#
        )
    };
    let hash = "a".repeat(64);
    for (tree, code) in [
        (item("../n-Q4_K_M.gguf", &hash, 1), "TPC0447"),
        (item("/etc/n-Q4_K_M.gguf", &hash, 1), "TPC0447"),
        (item("a/../../n-Q4_K_M.gguf", &hash, 1), "TPC0447"),
        (item("n-Q4_K_M.gguf", "../../../x", 1), "TPC0447"),
        (item("n-Q4_K_M-00001-of-00002.gguf", &hash, 1), "TPC0447"),
        ("{}".to_owned(), "TPC0450"),
        ("<html>".to_owned(), "TPC0450"),
        ("[7, null, {}]".to_owned(), "TPC0447"),
        ("[".repeat(100_000), "TPC0450"),
    ] {
        let faults = Faults {
            tree: Some(tree.clone()),
            ..Faults::default()
        };
        let shown: String = tree.chars().take(60).collect();
        let d = remote(&one(b"x", faults).url, "u/n").expect_err(&shown);
        assert_eq!((d.code.id, help(&d).is_empty()), (code, false), "{shown}");
    }
    let faults = Faults {
        tree: Some(item("n-Q4_K_M.gguf", &hash, 1 << 60)),
        ..Faults::default()
    };
    let d = get(&one(b"x", faults), &Scratch::new(), "u/n").unwrap_err();
    assert_eq!(d.code.id, "TPC0453", "{d}");
}

#[test]
fn two_downloads_at_once_fetch_one_file() {
    let bytes = model(50_000);
    let faults = Faults {
        delay: Duration::from_millis(400),
        ..Faults::default()
    };
    let (hub, s) = (one(&bytes, faults), Scratch::new());
    let results: Vec<_> = scope(|scope| {
        let run = || scope.spawn(|| get(&hub, &s, "u/n"));
        let all = [run(), run(), run()];
        all.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut waited = 0;
    for result in results {
        let (path, log) = result.unwrap();
        assert_eq!(fs::read(path).unwrap(), bytes);
        waited += log.iter().filter(|l| l.contains("waits")).count();
    }
    assert_eq!((hub.downloads().len(), waited), (1, 2));
}
