//! The client against small servers of its own, which behave badly on purpose.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use super::*;

static FOLDERS: AtomicUsize = AtomicUsize::new(0);

/// A folder of this test's own, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let nth = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kubeon-client-{}-{nth}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a temporary file");
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn kubeconfig(context: &str, server: &str, user: &serde_json::Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": context,
        "clusters": [{"name": context, "cluster": {"server": server}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "users": [{"name": context, "user": user}],
    })
    .to_string()
}

/// Answers each connection with the next of `answers`; an empty one closes it at once. Returns the URL.
fn server(answers: Vec<String>) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let handle = thread::spawn(move || {
        let mut heads = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            heads.push(head(&mut stream));
            stream.write_all(answer.as_bytes()).expect("the client reads");
        }
        heads
    });
    (url, handle)
}

fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

fn ask_at(url: &str, method: &str, timeout_s: u64) -> Result<KubeAnswer, Error> {
    let folder = Folder::new();
    let path = folder.write("config", &kubeconfig("a", url, &json!({"token": "t"})));
    let request = KubeRequest {
        kubeconfig: Some(path),
        method: method.into(),
        path: "/version".into(),
        timeout_s: Some(timeout_s),
        ..KubeRequest::default()
    };
    Clients::default().ask(&request, &BTreeMap::new())
}

#[test]
fn a_server_that_restarts_is_asked_again() {
    let (url, handle) = server(vec![
        answer("503 Service Unavailable", "", "{}"),
        String::new(),
        answer("429 Too Many Requests", "retry-after: 0\r\n", "{}"),
        answer("200 OK", "", "{\"ok\":1}"),
    ]);
    let got = ask_at(&url, "GET", 20).expect("an answer at last");
    assert_eq!(got, KubeAnswer { status: 200, body: json!({"ok": 1}) });
    let heads = handle.join().expect("the server");
    assert!(heads[3].contains("authorization: Bearer t"), "{heads:?}");
}

#[test]
fn what_makes_something_new_is_not_sent_twice() {
    let (url, handle) = server(vec![answer("500 Internal Server Error", "", "{\"message\":\"x\"}")]);
    assert_eq!(ask_at(&url, "POST", 20).expect("the answer").status, 500);
    handle.join().expect("the server");
    let (url, handle) = server(vec![String::new()]);
    let error = ask_at(&url, "POST", 20).expect_err("no second try");
    assert!(error.message.contains("can't be reached"), "{error}");
    handle.join().expect("the server");
}

#[test]
fn an_end_without_an_answer_says_where_and_why() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let error = ask_at(&url, "GET", 1).expect_err("nobody answers");
    assert!(error.message.contains("no answer to GET /version within 1 s"), "{error}");
    drop(listener);
    let error = ask_at(&url, "GET", 1).expect_err("nobody listens");
    assert!(error.message.contains(&url) && error.message.contains("context `a` of"), "{error}");
    assert!(error.message.contains("can't be reached, tried for 1 s: Connection refused"), "{error}");
    let (url, _) = server(vec![answer("401 Unauthorized", "", "{}")]);
    let error = ask_at(&url, "GET", 5).expect_err("a wrong token");
    assert!(error.message.contains("does not accept the credentials"), "{error}");
    let (url, _) = server(vec![answer("403 Forbidden", "", "{\"message\":\"u cannot get x\"}")]);
    let error = ask_at(&url, "GET", 5).expect_err("no right");
    assert!(error.message.contains("forbidden: u cannot get x"), "{error}");
}

#[test]
fn kubeconfigs_of_a_list_are_merged_and_missing_ones_passed_over() {
    let folder = Folder::new();
    let (url, handle) = server(vec![answer("200 OK", "", "{}")]);
    let first = folder.write("first", &kubeconfig("first", "http://127.0.0.1:1", &json!({})));
    let second = folder.write("second", &kubeconfig("second", &url, &json!({"token": "t"})));
    let list = format!("/no/such/file:{first}:{second}");
    let env = BTreeMap::from([("KUBECONFIG".to_owned(), list)]);
    let request = KubeRequest {
        context: Some("second".into()),
        method: "GET".into(),
        path: "/".into(),
        ..KubeRequest::default()
    };
    assert_eq!(Clients::default().ask(&request, &env).expect("an answer").status, 200);
    handle.join().expect("the server");
    let request = KubeRequest { context: Some("third".into()), ..request };
    let error = Clients::default().ask(&request, &env).expect_err("no such context");
    assert!(error.message.contains("has no context `third`, it has `first`, `second`"), "{error}");
}

#[test]
fn credentials_of_a_program_are_used_and_its_failure_told() {
    let folder = Folder::new();
    let plugin = folder.write("plugin", "#!/bin/sh\nread nothing && exit 3\nprintf '%s' \"$ANSWER\"\n");
    make_executable(&plugin);
    let (url, handle) = server(vec![answer("200 OK", "", "{}")]);
    let user = |command: &str| {
        json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command,
            "interactiveMode": "IfAvailable", "installHint": "install it"}})
    };
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "made"},
    });
    let env = BTreeMap::from([("ANSWER".to_owned(), credential.to_string())]);
    let ask = |command: &str| {
        let path = folder.write("config", &kubeconfig("a", &url, &user(command)));
        let request = KubeRequest {
            kubeconfig: Some(path),
            method: "GET".into(),
            path: "/".into(),
            timeout_s: Some(2),
            ..KubeRequest::default()
        };
        Clients::default().ask(&request, &env)
    };
    assert_eq!(ask(&plugin).expect("an answer").status, 200);
    assert!(handle.join().expect("the server")[0].contains("authorization: Bearer made"));
    let slow = folder.write("slow", "#!/bin/sh\nexec sleep 30\n");
    make_executable(&slow);
    let error = ask(&slow).expect_err("no end");
    assert!(error.message.contains("slow`, which gives its credentials, did not end within 2 s"), "{error}");
    let error = ask("/no/such/plugin").expect_err("no plugin");
    assert!(error.message.contains("install it"), "{error}");
}

fn make_executable(path: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(Path::new(path), std::fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[test]
fn a_proxy_is_gone_through() {
    // Where it asks the proxy to connect is all that matters here; the proxy then refuses.
    let (proxy, handle) = server(vec![answer("407 Proxy Authentication Required", "", "")]);
    let folder = Folder::new();
    let path = folder.write("config", &kubeconfig("a", "https://k8s.example.com:6443", &json!({})));
    let request = KubeRequest {
        kubeconfig: Some(path),
        method: "GET".into(),
        path: "/".into(),
        timeout_s: Some(1),
        ..KubeRequest::default()
    };
    let env = BTreeMap::from([("HTTPS_PROXY".to_owned(), proxy), ("NO_PROXY".to_owned(), String::new())]);
    let error = Clients::default().ask(&request, &env).expect_err("the proxy refuses");
    assert!(error.message.contains("k8s.example.com"), "{error}");
    let heads = handle.join().expect("the proxy");
    assert!(heads[0].starts_with("CONNECT k8s.example.com:6443"), "{heads:?}");
}
