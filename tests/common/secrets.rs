//! Texts that nobody may see, and the places where they are looked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Texts that may be found nowhere.
#[derive(Clone)]
pub struct Secrets(Vec<String>);

impl Secrets {
    pub fn new(texts: &[&str]) -> Secrets {
        Secrets(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    /// Returns the first secret in a text.
    pub fn found_in(&self, text: &str) -> Option<&str> {
        self.0.iter().map(String::as_str).find(|secret| text.contains(*secret))
    }

    #[track_caller]
    pub fn none_in(&self, what: &str, text: &str) {
        if let Some(secret) = self.found_in(text) {
            let line = text.lines().find(|line| line.contains(secret)).unwrap_or_default();
            panic!("`{secret}` is in {what}: {line}");
        }
    }

    /// Returns them as a pattern for `grep -F`, one a line.
    pub fn lines(&self) -> String {
        self.0.join("\n")
    }

    /// Watches the arguments and environments of all processes, those of hosts that are containers of this machine too.
    pub fn watch(&self) -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, secrets) = (stop.clone(), self.clone());
        let thread = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while !told.load(Ordering::Relaxed) {
                for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
                    for name in ["cmdline", "environ"] {
                        let bytes = std::fs::read(entry.path().join(name)).unwrap_or_default();
                        let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
                        if secrets.found_in(&text).is_some() && !seen.contains(&text) {
                            seen.push(text);
                        }
                    }
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            seen
        });
        Watch { stop, thread }
    }
}

/// A watch over all processes.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<String>>,
}

impl Watch {
    /// Ends it; no process may have shown a secret.
    #[track_caller]
    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.thread.join().expect("the watch ends");
        assert_eq!(seen, Vec::<String>::new(), "processes show secrets");
    }
}
