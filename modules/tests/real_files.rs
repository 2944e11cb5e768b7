//! Modules that deal with files and commands, run on a folder of this machine: what is there afterwards is asserted.

#[path = "real_files/git.rs"]
mod git;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use kubeon_modules::{Algorithm, Error, Machine, Map, Service, Settings, run, spec_of};
use serde_json::{Value, json};

/// A runner that has some content and counts how often it is asked for it.
#[derive(Default)]
struct Runner {
    content: Vec<u8>,
    fetched: Cell<usize>,
}

impl Service for Runner {
    fn fetch(&self, _sha256: &str, sink: &mut dyn io::Write) -> Result<(), Error> {
        self.fetched.set(self.fetched.get() + 1);
        sink.write_all(&self.content).expect("a sink that takes all");
        Ok(())
    }
    fn progress(&self, _line: &str) {}
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kubeon-real-files-{}-{count}", std::process::id()));
        fs::create_dir(&path).expect("a new folder");
        Folder(path)
    }
    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).expect("a writable folder");
        self.path(name)
    }
    fn text(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.0.join(name)).expect("a readable file")).expect("text")
    }
    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.0.join(name)).expect("a file").mode() & 0o7777
    }
    /// All that is in the folder: paths with what they hold, so that two looks can be compared.
    fn all(&self) -> Vec<String> {
        let mut all = Vec::new();
        fn look(at: &Path, all: &mut Vec<String>) {
            for entry in fs::read_dir(at).expect("a readable folder") {
                let path = entry.expect("an entry").path();
                let found = fs::symlink_metadata(&path).expect("an entry that stays");
                let holds = if found.is_file() {
                    Algorithm::Sha256.of(&fs::read(&path).expect("a file"))
                } else {
                    String::new()
                };
                all.push(format!(
                    "{} {:o} {}.{} {holds}",
                    path.display(),
                    found.mode(),
                    found.mtime(),
                    found.mtime_nsec()
                ));
                if found.is_dir() {
                    look(&path, all);
                }
            }
        }
        look(&self.0, &mut all);
        all.sort();
        all
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn task_with(runner: &Runner, module: &str, args: &Value, check: bool) -> Map {
    let spec = spec_of(module).unwrap_or_else(|| panic!("no module `{module}`"));
    let args = args.as_object().expect("arguments are an object");
    let decoded = (spec.decode)(args).unwrap_or_else(|error| panic!("{module} {args:?}: {error}"));
    let mut machine = Machine::new(runner, BTreeMap::new(), None);
    run(decoded.as_ref(), &mut machine, Settings { check, diff: true, look: false })
}

fn task(module: &str, args: Value) -> Map {
    task_with(&Runner::default(), module, &args, false)
}

fn failed(result: &Map) -> bool {
    result.get("failed") == Some(&Value::Bool(true))
}

fn text<'a>(result: &'a Map, key: &str) -> &'a str {
    result.get(key).and_then(Value::as_str).unwrap_or_else(|| panic!("no text `{key}` in {result:?}"))
}

/// Runs a task in check mode, which must change nothing and say so; for real, which must change; and once more, which
/// must find nothing to do. Returns the result of the run that changed.
fn converges(folder: &Folder, module: &str, args: Value) -> Map {
    let before = folder.all();
    let checked = task_with(&Runner::default(), module, &args, true);
    assert!(!failed(&checked) && checked["changed"] == true, "check: {module} {args}: {checked:?}");
    assert_eq!(folder.all(), before, "check mode changed something: {module} {args}");
    let done = task(module, args.clone());
    assert!(!failed(&done) && done["changed"] == true, "{module} {args}: {done:?}");
    let between = folder.all();
    let again = task(module, args.clone());
    assert!(!failed(&again) && again["changed"] == false, "again: {module} {args}: {again:?}");
    assert_eq!(folder.all(), between, "the second run changed something: {module} {args}");
    done
}

/// Runs a task that must fail and leave everything as it is.
fn fails(folder: &Folder, module: &str, args: Value) -> String {
    let before = folder.all();
    let result = task(module, args.clone());
    assert!(failed(&result), "{module} {args} should fail: {result:?}");
    assert_eq!(folder.all(), before, "a failed task left something: {module} {args}");
    text(&result, "msg").to_owned()
}

#[test]
fn files_and_directories() {
    let folder = Folder::new();
    let deep = folder.path("a/b/c");
    let result = converges(&folder, "file", json!({"path": deep, "state": "directory", "mode": "0750"}));
    assert_eq!((text(&result, "state"), text(&result, "mode")), ("directory", "0750"));
    assert_eq!((folder.mode("a"), folder.mode("a/b/c")), (0o750, 0o750));
    folder.write("a/b/x", "text");
    converges(
        &folder,
        "file",
        json!({"path": folder.path("a"), "state": "directory", "mode": "u=rwX,go=", "recurse": true}),
    );
    assert_eq!((folder.mode("a/b/x"), folder.mode("a/b")), (0o600, 0o700));
    converges(&folder, "file", json!({"path": folder.path("l"), "src": "a/b/x", "state": "link"}));
    assert_eq!(fs::read_link(folder.0.join("l")).expect("a link"), Path::new("a/b/x"));
    converges(&folder, "file", json!({"path": folder.path("h"), "src": folder.path("a/b/x"), "state": "hard"}));
    assert_eq!(fs::metadata(folder.0.join("h")).expect("a file").nlink(), 2);
    let at = json!({"path": folder.path("a/b/x"), "state": "touch", "access_time": "preserve", "modification_time": "200001020304.05"});
    converges(&folder, "file", at);
    let touched = task("file", json!({"path": folder.path("new"), "state": "touch"}));
    assert!(touched["changed"] == true && folder.text("new").is_empty(), "{touched:?}");
    assert_eq!(
        task("file", json!({"path": folder.path("new"), "state": "touch"}))["changed"],
        true,
        "touch always does"
    );
    converges(&folder, "file", json!({"path": folder.path("a"), "state": "absent"}));
    assert!(!folder.0.join("a").exists());
    assert!(fails(&folder, "file", json!({"path": folder.path("none"), "state": "file"})).contains("is absent"));
}

#[test]
fn a_failed_task_has_changed_what_it_had_done_before() {
    let folder = Folder::new();
    // The file system knows no such long name.
    let long = "n".repeat(300);
    let result = task("copy", json!({"content": "x", "dest": folder.path(&long)}));
    assert_eq!((failed(&result), &result["changed"]), (true, &json!(false)), "{result:?}");
    assert_eq!(folder.all(), Vec::<String>::new());
    let result = task("file", json!({"path": folder.path(&format!("made/{long}")), "state": "directory"}));
    assert_eq!((failed(&result), &result["changed"]), (true, &json!(true)), "{result:?}");
    assert!(Path::new(&folder.path("made")).is_dir());
}

#[test]
fn clauses_that_never_settle_are_applied_once() {
    let folder = Folder::new();
    let path = folder.write("x", "");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("own file");
    let result = task("file", json!({"path": path, "mode": "o=g,g=u,u="}));
    assert!(!failed(&result), "{result:?}");
    assert_eq!(folder.mode("x"), 0o064);
}

#[test]
fn copies() {
    let folder = Folder::new();
    let dest = folder.path("x.conf");
    let result = converges(&folder, "copy", json!({"dest": dest, "content": "one\n", "mode": "0600"}));
    assert_eq!(text(&result, "checksum"), Algorithm::Sha1.of(b"one\n"));
    assert_eq!((folder.text("x.conf").as_str(), folder.mode("x.conf")), ("one\n", 0o600));
    let result = converges(&folder, "copy", json!({"dest": dest, "content": "two\n", "backup": true}));
    assert_eq!(fs::read_to_string(text(&result, "backup_file")).expect("a backup"), "one\n");
    assert_eq!(folder.mode("x.conf"), 0o600, "the old mode stays");
    let refused = json!({"dest": dest, "content": "three\n", "validate": "grep -q two %s"});
    assert!(fails(&folder, "copy", refused).contains("was left as it is"));
    let accepted = json!({"dest": dest, "content": "two too\n", "validate": "grep -q two %s"});
    converges(&folder, "copy", accepted);
    let nowhere = json!({"dest": folder.path("none/x"), "content": "a"});
    assert!(fails(&folder, "copy", nowhere).contains("its folder"));
    let files = json!([{"path": "a/b", "content": "1", "mode": "0755"}, {"path": "e"}, {"path": "l", "link": "a/b"}]);
    converges(&folder, "copy", json!({"dest": folder.path("tree"), "files": files}));
    assert_eq!((folder.text("tree/l").as_str(), folder.mode("tree/a/b")), ("1", 0o755));
    assert!(folder.0.join("tree/e").is_dir());
    converges(&folder, "copy", json!({"dest": folder.path("copied"), "src": folder.path("tree"), "remote_src": true}));
    assert_eq!((folder.text("copied/tree/a/b").as_str(), folder.mode("copied/tree/a/b")), ("1", 0o755));
}

#[test]
fn content_that_is_there_is_not_fetched() {
    let folder = Folder::new();
    let content = vec![0xfe; 100_000];
    let args = json!({
        "dest": folder.path("big"),
        "content": {"sha256": Algorithm::Sha256.of(&content), "size_bytes": content.len()},
    });
    let runner = Runner { content, fetched: Cell::new(0) };
    assert_eq!(task_with(&runner, "copy", &args, false)["changed"], true);
    assert_eq!(runner.fetched.get(), 1);
    assert_eq!(task_with(&runner, "copy", &args, false)["changed"], false);
    assert_eq!(runner.fetched.get(), 1);
    let broken = Runner { content: b"something else".to_vec(), fetched: Cell::new(0) };
    fs::write(folder.0.join("big"), "old").expect("own file");
    let before = folder.all();
    assert!(failed(&task_with(&broken, "copy", &args, false)), "damaged content must fail");
    assert_eq!(folder.all(), before);
}

/// A runner that tells what is new of a file whose version here is written to meanwhile.
struct Overtaken(Runner);

impl Service for Overtaken {
    fn fetch(&self, sha256: &str, sink: &mut dyn io::Write) -> Result<(), Error> {
        self.0.fetch(sha256, sink)
    }
    fn fetch_over(&self, _sha256: &str, known: &[fs::File], sink: &mut dyn io::Write) -> Result<(), Error> {
        let [old] = known else { panic!("one file: {known:?}") };
        assert_eq!(old.metadata().expect("an open file").len(), 2 << 20);
        sink.write_all(&vec![7; 3 << 20]).expect("a sink that takes all");
        Ok(())
    }
    fn progress(&self, _line: &str) {}
}

#[test]
fn a_version_that_changes_while_it_is_compared_does_no_harm() {
    let folder = Folder::new();
    fs::write(folder.0.join("big"), vec![1; 2 << 20]).expect("own file");
    let content = vec![0xfe; 2 << 20];
    let args = json!({
        "dest": folder.path("big"),
        "content": {"sha256": Algorithm::Sha256.of(&content), "size_bytes": content.len()},
    });
    let runner = Overtaken(Runner { content: content.clone(), fetched: Cell::new(0) });
    let spec = spec_of("copy").expect("a module");
    let decoded = (spec.decode)(args.as_object().expect("arguments")).expect("arguments that are right");
    let mut machine = Machine::new(&runner, BTreeMap::new(), None);
    let result = run(decoded.as_ref(), &mut machine, Settings { check: false, diff: false, look: false });
    assert_eq!(result["changed"], true, "{result:?}");
    assert!(runner.0.fetched.get() == 1 && fs::read(folder.0.join("big")).expect("a file") == content);
    assert_eq!(folder.all().len(), 1);
}

#[test]
fn commands_and_scripts() {
    let folder = Folder::new();
    let here = folder.path("");
    let args = json!({"cmd": "touch made", "chdir": here, "creates": "ma*"});
    let checked = task_with(&Runner::default(), "command", &args, true);
    assert!(checked["changed"] == true && !checked.contains_key("skipped"), "{checked:?}");
    assert!(!folder.0.join("made").exists());
    let done = task("command", args.clone());
    assert!(done["changed"] == true && done["rc"] == 0 && folder.0.join("made").exists(), "{done:?}");
    assert!(text(&done, "start") <= text(&done, "end") && text(&done, "delta").starts_with("0:00:0"), "{done:?}");
    assert_eq!(task("command", args)["changed"], false);
    let checked = task_with(&Runner::default(), "shell", &json!({"cmd": "touch x", "chdir": here}), true);
    assert!(checked["skipped"] == true && checked["changed"] == false, "{checked:?}");
    let piped = task("shell", json!({"cmd": "cat | tr a-z A-Z; echo no >&2; exit 3", "stdin": "hello"}));
    assert_eq!((text(&piped, "stdout"), text(&piped, "stderr")), ("HELLO", "no"));
    assert!(failed(&piped) && piped["rc"] == 3 && text(&piped, "msg") == "non-zero return code", "{piped:?}");
    let script = json!({"_raw_params": "dir/say.sh 'a b'", "content": "#!/bin/sh\necho \"$1\" \"$0\"\n"});
    let said = task("script", script);
    let (word, path) = text(&said, "stdout").trim().rsplit_once(' ').expect("two words");
    assert!(word == "a b" && path.ends_with("/say.sh") && !Path::new(path).exists(), "{said:?}");
    assert_eq!(text(&task("raw", json!({"_raw_params": "echo $((1+1))"})), "stdout"), "2\n");
}

#[test]
fn lines_and_blocks() {
    let folder = Folder::new();
    let path = folder.write("conf", "# a\nPort 1\nPort 2\nend");
    let result = converges(
        &folder,
        "lineinfile",
        json!({"path": path, "regexp": "^Port 2|^Listen", "line": "Listen 3", "backup": true}),
    );
    assert_eq!((folder.text("conf").as_str(), text(&result, "msg")), ("# a\nPort 1\nListen 3\nend", "line replaced"));
    assert!(fs::read_to_string(text(&result, "backup")).expect("a backup").contains("Port 2"));
    converges(&folder, "lineinfile", json!({"path": path, "regexp": "^#", "state": "absent"}));
    converges(&folder, "lineinfile", json!({"path": path, "line": "last", "mode": "0600"}));
    assert_eq!((folder.text("conf").as_str(), folder.mode("conf")), ("Port 1\nListen 3\nend\nlast\n", 0o600));
    converges(&folder, "blockinfile", json!({"path": path, "block": "x\ny", "insertbefore": "^end"}));
    assert!(folder.text("conf").contains("BLOCK\nx\ny\n# END"), "{}", folder.text("conf"));
    converges(&folder, "blockinfile", json!({"path": path, "state": "absent"}));
    assert_eq!(folder.text("conf"), "Port 1\nListen 3\nend\nlast\n");
    converges(&folder, "blockinfile", json!({"path": folder.path("n/e/w"), "block": "x", "create": true}));
    let binary = folder.path("binary");
    fs::write(&binary, b"a=\xff\xfe\nb=1\n").expect("own file");
    converges(&folder, "lineinfile", json!({"path": binary, "regexp": "^b=", "line": "b=2"}));
    assert_eq!(fs::read(&binary).expect("own file"), b"a=\xff\xfe\nb=2\n", "other bytes stay as they are");
    let refused = json!({"path": path, "line": "bad", "validate": "grep -c nothing-like-it %s"});
    assert!(fails(&folder, "lineinfile", refused).contains("was left as it is"));
}

#[test]
fn replacements() {
    let folder = Folder::new();
    let path = folder.write("fstab", "a / ext4\nb none swap sw\n");
    converges(&folder, "replace", json!({"path": path, "regexp": r"^([^#].*\sswap\s.*)$", "replace": r"# \1"}));
    assert_eq!(folder.text("fstab"), "a / ext4\n# b none swap sw\n");
    let grows = json!({"path": path, "regexp": "ext4", "replace": "ext4,x"});
    let result = task("replace", grows);
    assert!(result["changed"] == true && text(&result, "msg") == "1 replacements made", "{result:?}");
    assert_eq!(folder.text("fstab"), "a / ext4,x\n# b none swap sw\n", "a run replaces once");
}

#[test]
fn looking_at_files() {
    let folder = Folder::new();
    let path = folder.write("x", "hello\n");
    let told = task("stat", json!({"path": path, "checksum_algorithm": "sha256"}));
    let stat = &told["stat"];
    assert_eq!(stat["checksum"], Algorithm::Sha256.of(b"hello\n"));
    assert_eq!((&stat["isreg"], &stat["size"], &stat["readable"]), (&json!(true), &json!(6), &json!(true)));
    std::os::unix::fs::symlink("x", folder.path("l")).expect("a link");
    let link = task("stat", json!({"path": folder.path("l")}));
    assert_eq!((&link["stat"]["islnk"], &link["stat"]["lnk_target"]), (&json!(true), &json!("x")));
    assert_eq!(link["stat"]["lnk_source"], fs::canonicalize(&path).expect("a file").to_string_lossy().as_ref());
    assert_eq!(task("slurp", json!({"src": path}))["content"], "aGVsbG8K");
    fs::create_dir(folder.0.join("d")).expect("a folder");
    folder.write("d/y", "no");
    let found = task("find", json!({"paths": [folder.path("")], "recurse": true, "contains": "hel+o"}));
    assert_eq!((&found["matched"], &found["files"][0]["path"]), (&json!(1), &json!(path)), "{found:?}");
    // As the item of a loop, a result is shown in the order of its keys.
    assert_eq!(told.keys().next().map(String::as_str), Some("changed"));
    let keys: Vec<&str> = stat.as_object().expect("a file").keys().map(String::as_str).collect();
    assert!(keys.windows(4).any(|keys| keys == ["executable", "pw_name", "gr_name", "checksum"]), "{keys:?}");
    let keys: Vec<&str> = found["files"][0].as_object().expect("a file").keys().map(String::as_str).collect();
    assert!(keys.windows(4).any(|keys| keys == ["ctime", "gr_name", "pw_name", "wusr"]), "{keys:?}");
    let made = task("tempfile", json!({"path": folder.path("d"), "state": "directory", "suffix": ".t"}));
    assert!(made["changed"] == true && Path::new(text(&made, "path")).is_dir() && made["mode"] == "0700", "{made:?}");
    let again = task("tempfile", json!({"path": folder.path("d"), "state": "directory", "suffix": ".t"}));
    assert_ne!(made["path"], again["path"]);
    let args = json!({"src": folder.path("d"), "dest": folder.path("whole"), "remote_src": true});
    converges(&folder, "assemble", args);
    assert_eq!(folder.text("whole"), "no");
}

/// Answers requests on a port of its own, which it returns, until the test's process ends.
fn web_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("a bound socket").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
            let (mut head, mut line) = (String::new(), String::new());
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                head.push_str(&std::mem::take(&mut line));
            }
            let length = head
                .to_lowercase()
                .split_once("content-length: ")
                .map_or(0, |(_, rest)| rest.lines().next().and_then(|digits| digits.parse().ok()).unwrap_or(0));
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("the announced body");
            let (status, headers, body) = match head.split(' ').nth(1).expect("a request line") {
                "/file" => ("200 OK", "", b"content\n".to_vec()),
                "/sums" => ("200 OK", "", format!("{}  file\n", Algorithm::Sha256.of(b"content\n")).into_bytes()),
                "/moved" => ("302 Found", "Location: /file\r\n", Vec::new()),
                "/echo" => {
                    let told = json!({"head": head, "body": String::from_utf8_lossy(&body)});
                    ("200 OK", "Content-Type: application/json\r\nSet-Cookie: a=1\r\n", told.to_string().into_bytes())
                }
                _ => ("404 Not Found", "", b"no".to_vec()),
            };
            let head =
                format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), &body].concat()).ok();
        }
    });
    port
}

#[test]
fn downloads() {
    let folder = Folder::new();
    let here = format!("http://127.0.0.1:{}", web_server());
    let dest = folder.path("x");
    let args = json!({"url": format!("{here}/moved"), "dest": dest, "mode": "0640"});
    let result = converges(&folder, "get_url", args);
    assert_eq!(
        (folder.text("x").as_str(), folder.mode("x"), &result["status_code"]),
        ("content\n", 0o640, &json!(200))
    );
    assert_eq!(result["checksum_dest"], Algorithm::Sha1.of(b"content\n"));
    let forced = json!({"url": format!("{here}/file"), "dest": dest, "force": true});
    assert_eq!(task("get_url", forced.clone())["changed"], false, "the same content is no change");
    folder.write("x", "old");
    let wrong = json!({"url": format!("{here}/file"), "dest": dest, "checksum": format!("sha256:{}", "0".repeat(64))});
    let message = fails(&folder, "get_url", wrong);
    assert!(message.contains("its checksum is"), "{message}");
    let message = fails(&folder, "get_url", json!({"url": format!("{here}/none"), "dest": dest, "force": true}));
    assert!(message.contains("404"), "{message}");
    let listed =
        json!({"url": format!("{here}/file"), "dest": folder.path(""), "checksum": format!("sha256:{here}/sums")});
    converges(&folder, "get_url", listed);
    let result = task("get_url", json!({"url": format!("{here}/file"), "dest": dest, "force": true, "backup": true}));
    assert_eq!(fs::read_to_string(text(&result, "backup_file")).expect("a backup"), "old");
    assert_eq!((folder.text("x").as_str(), folder.mode("x")), ("content\n", 0o640), "the old mode stays");
}

#[test]
fn requests() {
    let here = format!("http://127.0.0.1:{}", web_server());
    let got = task("uri", json!({"url": format!("{here}/moved"), "return_content": true}));
    assert_eq!((&got["status"], &got["content"], &got["redirected"]), (&json!(200), &json!("content\n"), &json!(true)));
    assert_eq!((&got["changed"], &got["url"]), (&json!(false), &json!(format!("{here}/file"))));
    let body = json!({"a": 1});
    let args = json!({"url": format!("{here}/echo"), "method": "PUT", "body": body, "body_format": "json", "user": "me", "password": "pw"});
    let put = task("uri", args);
    let head = put["json"]["head"].as_str().expect("what was sent");
    assert!(head.starts_with("PUT /echo") && head.contains("Authorization: Basic bWU6cHc="), "{head}");
    assert!(head.contains("Content-Type: application/json"), "{head}");
    assert_eq!((&put["json"]["body"], &put["cookies"]["a"]), (&json!("{\"a\":1}"), &json!("1")));
    let missing = task("uri", json!({"url": format!("{here}/none")}));
    assert!(failed(&missing) && missing["status"] == 404 && missing["content"] == "no", "{missing:?}");
    assert_eq!(task("uri", json!({"url": format!("{here}/none"), "status_code": 404}))["status"], 404);
    let closed = task("uri", json!({"url": "http://127.0.0.1:1/", "timeout": 2}));
    assert!(failed(&closed) && closed["status"] == -1, "{closed:?}");
    let checked = task_with(&Runner::default(), "uri", &json!({"url": here}), true);
    assert_eq!(checked["skipped"], true);
}

#[test]
fn archives() {
    let folder = Folder::new();
    let here = folder.path("");
    let made = "mkdir -p from/a to zip && echo 1 >from/a/x && echo 2 >'from/a/y z' && ln -s x from/a/l && chmod 755 from/a/x \
                && tar -czf t.tgz -C from . && tar -cJf s.txz from && tar -cf up.tar -P from/../from/a/x \
                && cd from && unzip -v >/dev/null && python3 -m zipfile -c ../z.zip a";
    let made = task("shell", json!({"cmd": made, "chdir": here}));
    assert!(!failed(&made), "{made:?}");
    let args = json!({"src": folder.path("t.tgz"), "dest": folder.path("to"), "remote_src": true, "list_files": true});
    let result = converges(&folder, "unarchive", args.clone());
    assert_eq!((folder.text("to/a/x").as_str(), folder.text("to/a/y z").as_str()), ("1\n", "2\n"));
    assert!(result["files"].as_array().is_some_and(|files| files.contains(&json!("./a/y z"))), "{result:?}");
    folder.write("to/a/x", "changed");
    converges(&folder, "unarchive", args);
    assert_eq!(folder.text("to/a/x"), "1\n");
    let stripped = json!({
        "src": folder.path("s.txz"), "dest": folder.path("to"), "remote_src": true,
        "extra_opts": ["--strip-components=2"], "exclude": ["*y z"], "mode": "0600",
    });
    converges(&folder, "unarchive", stripped);
    assert_eq!((folder.text("to/x").as_str(), folder.mode("to/x")), ("1\n", 0o600));
    assert!(!folder.0.join("to/y z").exists());
    let zip = json!({"src": folder.path("z.zip"), "dest": folder.path("zip"), "remote_src": true});
    assert_eq!(converges(&folder, "unarchive", zip)["handler"], "ZipArchive");
    assert_eq!(folder.text("zip/a/y z"), "2\n");
    let up = json!({"src": folder.path("up.tar"), "dest": folder.path("to"), "remote_src": true});
    assert!(fails(&folder, "unarchive", up).contains("leads out of"));
    let broken = json!({"src": folder.write("b.tgz", "no archive"), "dest": folder.path("to"), "remote_src": true});
    fails(&folder, "unarchive", broken);
    fs::create_dir(folder.0.join("sent")).expect("a folder");
    let content = fs::read(folder.0.join("t.tgz")).expect("an archive");
    let sent = json!({"sha256": Algorithm::Sha256.of(&content), "size_bytes": content.len()});
    let runner = Runner { content, fetched: Cell::new(0) };
    let args = json!({"src": "t.tgz", "dest": folder.path("sent"), "content": sent});
    let result = task_with(&runner, "unarchive", &args, false);
    assert!(result["changed"] == true && folder.text("sent/a/x") == "1\n", "{result:?}");
    assert_eq!(runner.fetched.get(), 1);
}

#[test]
fn keys_of_servers_and_users() {
    let folder = Folder::new();
    let path = folder.path("ssh/known_hosts");
    let args = json!({"name": "h", "key": "h ssh-ed25519 AAAA", "path": path, "hash_host": true});
    converges(&folder, "known_hosts", args);
    let line = folder.text("ssh/known_hosts");
    assert!(line.starts_with("|1|") && line.ends_with(" ssh-ed25519 AAAA\n"), "{line}");
    converges(&folder, "known_hosts", json!({"name": "h", "path": path, "state": "absent"}));
    assert_eq!(folder.text("ssh/known_hosts"), "");
    let keys = folder.path("keys/authorized_keys");
    let args = json!({"user": "root", "key": "ssh-ed25519 AAAA me", "path": keys});
    if fs::metadata(&folder.0).expect("own folder").uid() == 0 {
        converges(&folder, "authorized_key", args);
        assert_eq!(
            (folder.text("keys/authorized_keys").as_str(), folder.mode("keys")),
            ("ssh-ed25519 AAAA me\n", 0o700)
        );
    }
}

#[test]
fn sections_and_their_options() {
    let folder = Folder::new();
    let path = folder.write("conf", "[Journal]\n#Storage=auto\n\n[Other]\nStorage=x");
    let option = |value: &str| json!({"path": path, "section": "Journal", "option": "Storage", "value": value, "no_extra_spaces": true});
    let result = converges(&folder, "ini_file", option("persistent"));
    assert_eq!(folder.text("conf"), "[Journal]\nStorage=persistent\n\n[Other]\nStorage=x\n");
    assert_eq!(text(&result, "msg"), "option changed");
    converges(&folder, "ini_file", json!({"path": path, "section": "New", "option": "a", "value": "", "mode": "0600"}));
    assert_eq!((folder.text("conf").ends_with("[New]\na = \n"), folder.mode("conf")), (true, 0o600));
    converges(&folder, "ini_file", json!({"path": path, "section": "Other", "state": "absent", "backup": true}));
    assert!(!folder.text("conf").contains("Other"), "{}", folder.text("conf"));
    assert!(fails(&folder, "ini_file", json!({"path": path, "option": "x"})).contains("needs a `value`"));
    let limits = folder.path("limits.conf");
    let limit = json!({"dest": limits, "domain": "*", "limit_type": "-", "limit_item": "nofile", "value": "4096"});
    converges(&folder, "pam_limits", limit);
    assert_eq!(folder.text("limits.conf"), "*\t-\tnofile\t4096\n");
    let list = folder.path("modprobe.d/blacklist.conf");
    converges(&folder, "kernel_blacklist", json!({"name": "nouveau", "blacklist_file": list}));
    converges(&folder, "kernel_blacklist", json!({"name": "nouveau", "blacklist_file": list, "state": "absent"}));
    assert_eq!(folder.text("modprobe.d/blacklist.conf"), "");
    let repo = |enabled: bool| json!({"name": "k8s", "description": "K", "baseurl": "https://a", "enabled": enabled, "reposdir": folder.path("")});
    converges(&folder, "yum_repository", repo(true));
    converges(&folder, "yum_repository", repo(false));
    assert_eq!(folder.text("k8s.repo"), "[k8s]\nbaseurl = https://a\nenabled = 0\nname = K\n");
    let gone = json!({"name": "k8s", "state": "absent", "reposdir": folder.path("")});
    converges(&folder, "yum_repository", gone);
    assert!(!folder.0.join("k8s.repo").exists());
}
