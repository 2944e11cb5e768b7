//! The lookup `password`: a random password, kept in a file from then on.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::expanded_home;
use super::files::terms;
use crate::template::call::{Call, Lookup, callable};
use crate::template::filters::crypt::Scheme;
use crate::template::filters::random::Source;
use crate::template::live::{Live, Result};

pub(super) const LOOKUPS: &[Lookup] =
    &[callable("password", &["*", "length", "chars", "encrypt", "ident", "seed"], password)];

/// Hosts that run at once ask for the same file: one of them makes it.
static MAKING: Mutex<()> = Mutex::new(());

const LENGTH_LIMIT: usize = 10_000;

/// What a password is to be.
struct Wanted {
    length: usize,
    marks: Vec<String>,
    encrypt: Option<String>,
    /// The version of bcrypt.
    ident: Option<String>,
    seed: Option<String>,
}

fn password(call: &mut Call<'_>) -> Result<Vec<Live>> {
    terms(call)?.into_iter().map(|term| one(call, &term).map(Live::from)).collect()
}

fn one(call: &Call<'_>, term: &str) -> Result<String> {
    let mut wanted = Wanted {
        length: 20,
        marks: vec![],
        encrypt: call.text_at(2)?,
        ident: call.text_at(3)?,
        seed: call.text_at(4)?,
    };
    // The path comes first, and may hold blanks; settings come after it.
    let words: Vec<&str> = term.split(' ').collect();
    let is_setting = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| matches!(name, "length" | "chars" | "encrypt" | "seed" | "ident"))
    };
    let first = words.iter().position(is_setting).unwrap_or(words.len());
    let path = words[..first].join(" ");
    let mut length = call.text_at(0)?;
    let mut marks = match call.given(1) {
        Some(marks) if marks.is_list() => Some(marks.items()?.iter().map(Live::text).collect::<Result<Vec<_>>>()?),
        Some(marks) => Some(marks_of(&marks.text()?)),
        None => None,
    };
    for (name, value) in super::settings(call, &words[first..].join(" "))? {
        match name.as_str() {
            "length" => length = Some(value),
            "chars" => marks = Some(marks_of(&value)),
            "encrypt" => wanted.encrypt = Some(value),
            "seed" => wanted.seed = Some(value),
            "ident" => wanted.ident = Some(value),
            _ => return Err(call.fault(format!("no argument named `{name}`"))),
        }
    }
    if let Some(length) = length {
        let parsed = length.parse().ok().filter(|length| (1..=LENGTH_LIMIT).contains(length));
        wanted.length = parsed.ok_or_else(|| call.fault(format!("`length` can't be `{length}`")))?;
    }
    wanted.marks = marks.unwrap_or_else(|| ["ascii_letters", "digits", ".,:-_"].map(str::to_owned).to_vec());
    let wanted = Wanted { encrypt: wanted.encrypt.filter(|sort| !sort.is_empty()), ..wanted };
    made(&call.context().templar.inner.folders.playbook, &path, &wanted).map_err(|message| call.fault(message))
}

/// Splits at commas; two commas in a row are a comma that passwords may hold.
fn marks_of(text: &str) -> Vec<String> {
    let mut marks: Vec<String> =
        text.replace(",,", ",").split(',').filter(|m| !m.is_empty()).map(str::to_owned).collect();
    if text.contains(",,") {
        marks.push(",".to_owned());
    }
    marks
}

fn alphabet(marks: &[String]) -> Vec<char> {
    let lower = "abcdefghijklmnopqrstuvwxyz";
    let upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut all: Vec<char> = Vec::new();
    for mark in marks {
        let named = match mark.as_str() {
            "ascii_letters" => format!("{lower}{upper}"),
            "ascii_lowercase" => lower.to_owned(),
            "ascii_uppercase" => upper.to_owned(),
            "digits" => "0123456789".to_owned(),
            "hexdigits" => "0123456789abcdefABCDEF".to_owned(),
            "octdigits" => "01234567".to_owned(),
            "punctuation" => "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~".to_owned(),
            "whitespace" => " \t\n\r\u{b}\u{c}".to_owned(),
            other => other.to_owned(),
        };
        for c in named.chars() {
            if !all.contains(&c) {
                all.push(c);
            }
        }
    }
    all
}

fn made(playbook: &Path, path: &str, wanted: &Wanted) -> std::result::Result<String, String> {
    let _alone = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let path = playbook.join(expanded_home(path));
    let is_kept = path != Path::new("/dev/null");
    let known = match is_kept {
        true => known(&path)?,
        false => None,
    };
    let (plain, salt) = match &known {
        Some((plain, salt)) => (plain.clone(), salt.clone()),
        None => (fresh(wanted)?, None),
    };
    let Some(sort) = &wanted.encrypt else {
        if known.is_none() && is_kept {
            write(&path, &plain)?;
        }
        return Ok(plain);
    };
    let had_salt = salt.is_some();
    let scheme = Scheme::named(sort)?;
    let salt = salt.map_or_else(|| scheme.random_salt(None), Ok)?;
    let hash = scheme.hash(&plain, &salt, None, wanted.ident.as_deref())?;
    if !had_salt && is_kept {
        let ident = wanted.ident.as_deref().or((scheme == Scheme::Bcrypt).then_some("2b"));
        let ident = ident.map_or_else(String::new, |ident| format!(" ident={ident}"));
        write(&path, &format!("{plain} salt={salt}{ident}"))?;
    }
    Ok(hash)
}

fn fresh(wanted: &Wanted) -> std::result::Result<String, String> {
    let alphabet = alphabet(&wanted.marks);
    if alphabet.is_empty() {
        return Err("`chars` names none".to_owned());
    }
    let mut source = match &wanted.seed {
        Some(seed) => Source::seeded_by_text(seed),
        None => Source::unseeded()?,
    };
    Ok((0..wanted.length).map(|_| alphabet[source.below(alphabet.len() as u64) as usize]).collect())
}

/// Reads a password, and the salt behind it where there is one.
fn known(path: &PathBuf) -> std::result::Result<Option<(String, Option<String>)>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let line = text.trim_end_matches(['\n', '\r']);
            Ok(Some(match line.rsplit_once(" salt=") {
                Some((plain, rest)) => (plain.to_owned(), Some(rest.split(' ').next().unwrap_or(rest).to_owned())),
                None => (line.to_owned(), None),
            }))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("read `{}`: {error}", path.display())),
    }
}

/// Writes a file that only its owner can read, whole or not at all.
fn write(path: &Path, text: &str) -> std::result::Result<(), String> {
    let fault = |error: std::io::Error| format!("write `{}`: {error}", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fault)?;
    let temporary = path.with_extension(format!("tmp{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary).map_err(fault)?;
    file.write_all(format!("{text}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(fault)?;
    std::fs::rename(&temporary, path).map_err(fault)
}
