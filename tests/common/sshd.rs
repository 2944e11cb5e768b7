//! A real sshd on a port of its own, with its own keys and folder, ended with the test.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use kubeon_run::connection::{Target, Via};

/// A folder that goes with the value.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("kubeon-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Runs a program that must succeed, and returns what it printed.
pub fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().expect(program);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The files of accounts take one writer.
static ACCOUNTS: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// A user of this machine, gone with the value.
pub struct User {
    pub name: String,
    pub home: PathBuf,
}

impl User {
    /// Adds a user with this login shell.
    pub fn new(shell: &str) -> User {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("kt{}x{}", std::process::id() % 100_000, NEXT.fetch_add(1, Ordering::Relaxed));
        let _one_at_a_time = ACCOUNTS.lock();
        // `*` takes no password and, unlike the usual `!`, does not lock the account for sshd.
        must("useradd", &["--create-home", "--shell", shell, "--password", "*", &name]);
        let home = PathBuf::from("/home").join(&name);
        User { name, home }
    }

    pub fn set_password(&self, password: &str) {
        let _one_at_a_time = ACCOUNTS.lock();
        // Through its input: other tests look for secrets among the arguments of every process.
        let mut openssl = Command::new("openssl")
            .args(["passwd", "-6", "-stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("openssl");
        let input = openssl.stdin.take().expect("it has an input");
        std::io::Write::write_all(&mut { input }, format!("{password}\n").as_bytes()).expect("it reads");
        let hash = String::from_utf8(openssl.wait_with_output().expect("it ends").stdout).expect("a hash");
        must("usermod", &["--password", hash.trim(), &self.name]);
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _one_at_a_time = ACCOUNTS.lock();
        // Sessions that are not over yet; that there are none is as good.
        Command::new("pkill").args(["-KILL", "-u", &self.name]).output().ok();
        Command::new("userdel").args(["--remove", "--force", &self.name]).output().ok();
        for place in ["/var/tmp", "/tmp", "/dev/shm"] {
            // The number is not known any more; whatever has lost its owner here was this user's.
            Command::new("find")
                .args([place, "-maxdepth", "1", "-name", "kubeon-run-*", "-nouser"])
                .args(["-exec", "rm", "-rf", "{}", "+"])
                .output()
                .ok();
        }
    }
}

/// A running sshd.
pub struct Sshd {
    pub folder: Folder,
    pub port: u16,
    child: Child,
}

impl Sshd {
    /// Starts one with further lines of configuration.
    pub fn start(config: &str) -> Sshd {
        Sshd::start_after("true", config)
    }

    /// Starts one whose mounts cover the temporary folder, too: its own files are kept in sight under `/mnt`.
    pub fn start_hidden(prepare: &str) -> Sshd {
        Sshd::start_after(
            &format!("mount --bind \"$FOLDER\" /mnt; {prepare}; mkdir -p \"$FOLDER\"; mount --bind /mnt \"$FOLDER\""),
            "",
        )
    }

    /// Starts one in mounts of its own, which `prepare` may alter.
    pub fn start_after(prepare: &str, config: &str) -> Sshd {
        let folder = Folder::new();
        let path = |name: &str| folder.path().join(name).display().to_string();
        must("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &path("host")]);
        must("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "test key", "-f", &path("id")]);
        fs::copy(path("id.pub"), path("authorized_keys")).expect("copy");
        fs::create_dir_all("/run/sshd").expect("sshd's own folder");
        let port = free_port();
        let text = format!(
            "{config}\nListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\nPermitRootLogin yes\nLogLevel DEBUG1\n",
            path("host"),
            path("authorized_keys"),
        );
        fs::write(path("config"), text).expect("write");
        let log = fs::File::create(path("log")).expect("log");
        let child = Command::new("unshare")
            .env("FOLDER", folder.path())
            .args(["--mount", "sh", "-e", "-c"])
            .arg(format!("{prepare}; exec /usr/sbin/sshd -D -e -f {}", path("config")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("sshd");
        let sshd = Sshd { folder, port, child };
        let end = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "sshd does not listen: {}", sshd.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        sshd.know();
        sshd
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Writes the file of known hosts with this one's key.
    pub fn know(&self) {
        let key = fs::read_to_string(self.path("host.pub")).expect("key");
        fs::write(self.path("known_hosts"), format!("[127.0.0.1]:{} {key}", self.port)).expect("write");
    }

    /// Returns a target that can log in here.
    pub fn target(&self, user: &str) -> Target {
        Target {
            host: "h1".into(),
            address: "127.0.0.1".into(),
            port: Some(self.port),
            user: Some(user.into()),
            via: Via::Ssh,
            password: None,
            private_key_file: Some(self.path("id")),
            // Not what the person who runs the tests has configured.
            ssh_args: vec!["-F".into(), "none".into()],
            host_key_checking: true,
            connect_timeout: Duration::from_secs(20),
            retries: 0,
            silence_timeout: Duration::from_secs(20),
            known_hosts: vec![self.path("known_hosts")],
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// A relay in front of a port, which can be cut.
pub struct Relay {
    pub port: u16,
    state: std::sync::Arc<std::sync::Mutex<RelayState>>,
}

#[derive(Default)]
struct RelayState {
    /// Carries nothing any more, without saying so.
    dead: bool,
    /// How many bytes towards the host are still carried.
    left: Option<usize>,
    /// Whether the streams are closed then.
    close: bool,
    /// How many bytes a second are carried towards the host.
    pace: Option<u32>,
    streams: Vec<TcpStream>,
    /// How many connections are still closed as soon as they are there.
    refuse: usize,
    accepted: usize,
}

impl Relay {
    pub fn to(port: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let state = std::sync::Arc::new(std::sync::Mutex::new(RelayState::default()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for near in listener.incoming() {
                {
                    let mut state = shared.lock().expect("a lock");
                    state.accepted += 1;
                    if state.refuse > 0 {
                        state.refuse -= 1;
                        continue;
                    }
                }
                let (Ok(near), Ok(far)) = (near, TcpStream::connect(("127.0.0.1", port))) else { return };
                shared
                    .lock()
                    .expect("a lock")
                    .streams
                    .extend([near.try_clone().expect("a clone"), far.try_clone().expect("a clone")]);
                let (near2, far2) = (near.try_clone().expect("a clone"), far.try_clone().expect("a clone"));
                let (one, two) = (shared.clone(), shared.clone());
                std::thread::spawn(move || carry(near, far, &one, true));
                std::thread::spawn(move || carry(far2, near2, &two, false));
            }
        });
        Relay { port: own, state }
    }

    /// Closes the next connections at once, as a sshd that has too many, and returns how many there were so far.
    pub fn refuse(&self, times: usize) -> usize {
        let mut state = self.state.lock().expect("a lock");
        state.refuse = times;
        std::mem::take(&mut state.accepted)
    }

    /// Carries no more than so many bytes a second towards the host.
    pub fn slow_down(&self, bytes_per_s: u32) {
        self.state.lock().expect("a lock").pace = Some(bytes_per_s);
    }

    /// Carries nothing any more, as a cable that is pulled.
    pub fn go_silent_after(&self, bytes: usize) {
        self.state.lock().expect("a lock").left = Some(bytes);
    }

    /// Closes all that is open, as a host that goes down.
    pub fn close_after(&self, bytes: usize) {
        let mut state = self.state.lock().expect("a lock");
        state.left = Some(bytes);
        state.close = true;
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, state: &std::sync::Mutex<RelayState>, towards_host: bool) {
    use std::io::{Read, Write};
    let mut buffer = [0; 8192];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            to.shutdown(std::net::Shutdown::Write).ok();
            return;
        }
        let mut carried = count;
        let pace;
        {
            let mut state = state.lock().expect("a lock");
            if towards_host && let Some(left) = &mut state.left {
                carried = count.min(*left);
                *left -= carried;
                state.dead |= carried < count;
                if state.dead && state.close {
                    for stream in state.streams.drain(..) {
                        stream.shutdown(std::net::Shutdown::Both).ok();
                    }
                }
            }
            if state.dead && !towards_host {
                carried = 0;
            }
            pace = state.pace.filter(|_| towards_host);
        }
        if let Some(bytes_per_s) = pace {
            std::thread::sleep(Duration::from_secs_f64(carried as f64 / f64::from(bytes_per_s)));
        }
        if to.write_all(&buffer[..carried]).is_err() {
            return;
        }
    }
}
