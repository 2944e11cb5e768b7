//! Checkouts of git, from folders and from a server that wants a password.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

use serde_json::json;

use super::{Folder, Runner, failed, task, task_with, text};

/// Runs git on a repository that a test serves from a folder.
fn git(at: &str, words: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
    let output = std::process::Command::new("git")
        .args(["-C", at])
        .args(identity)
        .args(words)
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn checkouts_follow_a_branch_a_tag_and_a_commit() {
    let folder = Folder::new();
    let origin = folder.path("origin");
    fs::create_dir(&origin).expect("own folder");
    git(&origin, &["init", "-q"]);
    folder.write("origin/a", "1");
    git(&origin, &["add", "a"]);
    git(&origin, &["commit", "-qm", "one"]);
    git(&origin, &["tag", "-am", "v1", "v1"]);
    let first = git(&origin, &["rev-parse", "HEAD"]);
    let url = format!("file://{origin}");
    let dest = folder.path("new/checkout");
    let at = |version: &str| json!({"repo": url, "dest": dest, "version": version});
    let made = task("git", at("HEAD"));
    assert_eq!((made["changed"].as_bool(), text(&made, "after")), (Some(true), first.as_str()), "{made:?}");
    assert_eq!(task("git", at("HEAD"))["changed"], false);
    folder.write("origin/a", "2");
    git(&origin, &["commit", "-qam", "two"]);
    let second = git(&origin, &["rev-parse", "HEAD"]);
    let checked = task_with(&Runner::default(), "git", &at("main"), true);
    assert_eq!((checked["changed"].as_bool(), folder.text("new/checkout/a").as_str()), (Some(true), "1"));
    let moved = task("git", at("main"));
    assert_eq!((text(&moved, "before"), text(&moved, "after")), (first.as_str(), second.as_str()), "{moved:?}");
    assert_eq!(folder.text("new/checkout/a"), "2");
    for (version, holds) in [("v1", "1"), (second.as_str(), "2"), (&first[..8], "1"), ("main", "2")] {
        let result = task("git", at(version));
        assert!(!failed(&result) && result["changed"] == true, "{version}: {result:?}");
        assert_eq!(folder.text("new/checkout/a"), holds, "{version}");
        assert_eq!(task("git", at(version))["changed"], false, "{version}");
    }
    folder.write("new/checkout/a", "mine");
    let refused = task("git", at("main"));
    assert!(text(&refused, "msg").starts_with("Local modifications exist in the destination"), "{refused:?}");
    let forced = json!({"repo": url, "dest": dest, "version": "main", "force": true});
    assert_eq!(
        (task("git", forced.clone())["changed"].as_bool(), folder.text("new/checkout/a").as_str()),
        (Some(true), "2")
    );
    assert_eq!(task("git", forced)["changed"], false);
    let shallow = json!({"repo": url, "dest": folder.path("shallow"), "depth": 1, "version": "v1"});
    assert_eq!(task("git", shallow.clone())["changed"], true);
    assert_eq!(git(&folder.path("shallow"), &["rev-list", "--count", "HEAD"]), "1");
    assert_eq!(task("git", shallow)["changed"], false);
}

/// Gives what lies in `folder` to whoever says `basic`, on a port of its own, until the test's process ends.
fn guarded_server(folder: &str, basic: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("a bound socket").port();
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
            let (mut head, mut line) = (String::new(), String::new());
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                head.push_str(&std::mem::take(&mut line));
            }
            let asked = head.split(' ').nth(1).unwrap_or_default();
            let path = asked.split('?').next().unwrap_or_default().trim_start_matches('/');
            let (status, body) = match fs::read(Path::new(&folder).join(path)) {
                _ if !head.contains(&format!("Authorization: Basic {basic}\r\n")) => {
                    ("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"", Vec::new())
                }
                Ok(content) => ("200 OK", content),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), &body].concat()).ok();
        }
    });
    port
}

/// git tells each command line that it starts, those of its helpers among them, in the file of `GIT_TRACE`.
#[test]
fn a_password_of_a_url_stands_on_no_command_line_and_in_no_file() {
    let folder = Folder::new();
    let origin = folder.path("origin");
    fs::create_dir(&origin).expect("own folder");
    git(&origin, &["init", "-q"]);
    folder.write("origin/a", "1");
    git(&origin, &["add", "a"]);
    git(&origin, &["commit", "-qm", "one"]);
    git(&origin, &["update-server-info"]);
    // What `me` and `se@cret'$x` are in base64.
    let port = guarded_server(&folder.path("origin/.git"), "bWU6c2VAY3JldCckeA==");
    let trace = folder.path("trace");
    let program = folder.write("git", &format!("#!/bin/sh\nGIT_TRACE={trace} exec git \"$@\"\n"));
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("own file");
    let at = |password: &str| {
        let url = format!("http://me:{password}@127.0.0.1:{port}/");
        json!({"repo": url, "dest": folder.path("checkout"), "version": "main", "executable": program})
    };
    let wrong = task("git", at("se%40crett"));
    assert!(failed(&wrong) && !format!("{:?}", wrong.get("msg")).contains("crett"), "{wrong:?}");
    let made = task("git", at("se%40cret'$x"));
    assert_eq!(made.get("changed"), Some(&json!(true)), "{made:?}");
    assert_eq!(folder.text("checkout/a"), "1");
    folder.write("origin/a", "2");
    git(&origin, &["commit", "-qam", "two"]);
    git(&origin, &["update-server-info"]);
    let updated = task("git", at("se%40cret'$x"));
    assert_eq!((&updated["changed"], folder.text("checkout/a").as_str()), (&json!(true), "2"), "{updated:?}");
    assert_eq!(task("git", at("se%40cret'$x"))["changed"], false);
    let traced = folder.text("trace");
    assert!(traced.contains("git remote-http ") && traced.contains("KUBEON_GIT_PASSWORD"), "{traced}");
    for text in [traced.as_str(), &folder.text("checkout/.git/config")] {
        assert!(!text.contains("cret"), "{text}");
    }

    // A checkout that has the password from elsewhere loses it.
    let with = format!("http://me:se%40cret'$x@127.0.0.1:{port}/");
    git(&folder.path("checkout"), &["remote", "set-url", "origin", &with]);
    assert_eq!(task("git", at("se%40cret'$x"))["remote_url_changed"], true);
    assert!(!folder.text("checkout/.git/config").contains("cret"));
}
