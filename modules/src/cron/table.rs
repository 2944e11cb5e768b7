//! A crontab's lines: jobs, each after a comment with its name, and variables.

use crate::{Error, ErrorKind};

/// What comes before a job's name. Ansible writes the same, so that either finds the other's jobs.
const MARK: &str = "#Ansible: ";

pub(super) struct Table(Vec<String>);

impl Table {
    pub(super) fn of(text: &str) -> Table {
        Table(text.lines().map(str::to_owned).collect())
    }

    pub(super) fn text(&self) -> String {
        self.0.iter().map(|line| format!("{line}\n")).collect()
    }

    pub(super) fn jobs(&self) -> Vec<String> {
        self.0.iter().filter_map(|line| line.strip_prefix(MARK)).map(str::to_owned).collect()
    }

    pub(super) fn variables(&self) -> Vec<String> {
        self.0.iter().filter_map(|line| variable_of(line)).map(str::to_owned).collect()
    }

    /// Puts the job's line after its name, and says whether that changed anything.
    pub(super) fn set_job(&mut self, name: &str, line: &str) -> bool {
        match self.position(name) {
            Some(at) => {
                // A name without a line of its own, at the end or before another name, gets one.
                let has_line = self.0.get(at + 1).is_some_and(|line| !line.starts_with(MARK));
                if has_line && self.0[at + 1] == line {
                    return false;
                }
                if has_line {
                    line.clone_into(&mut self.0[at + 1]);
                } else {
                    self.0.insert(at + 1, line.to_owned());
                }
            }
            None => {
                // A job that was there before without a name takes it.
                if let Some(at) = self.0.iter().position(|other| other == line)
                    && (at == 0 || !self.0[at - 1].starts_with(MARK))
                {
                    self.0.insert(at, format!("{MARK}{name}"));
                } else {
                    self.0.extend([format!("{MARK}{name}"), line.to_owned()]);
                }
            }
        }
        true
    }

    pub(super) fn remove_job(&mut self, name: &str) -> bool {
        let before = self.0.len();
        while let Some(at) = self.position(name) {
            self.0.remove(at);
            if self.0.get(at).is_some_and(|line| !line.starts_with(MARK)) {
                self.0.remove(at);
            }
        }
        self.0.len() != before
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|line| line.strip_prefix(MARK).is_some_and(|other| other.trim() == name.trim()))
    }

    /// Puts a variable before all else, or where it is asked to be.
    ///
    /// # Errors
    /// [`ErrorKind::Host`] when the variable beside which it is to be is not there.
    pub(super) fn set_variable(
        &mut self,
        name: &str,
        value: &str,
        after: Option<&str>,
        before: Option<&str>,
    ) -> Result<bool, Error> {
        let line = format!("{name}=\"{value}\"");
        if let Some(at) = self.variable(name) {
            let changed = self.0[at] != line;
            self.0[at] = line;
            return Ok(changed);
        }
        let place = |other: &str| {
            self.variable(other)
                .ok_or_else(|| Error::new(ErrorKind::Host, format!("there is no variable `{other}` in the crontab")))
        };
        let at = match (after, before) {
            (Some(other), _) => place(other)? + 1,
            (None, Some(other)) => place(other)?,
            (None, None) => 0,
        };
        self.0.insert(at, line);
        Ok(true)
    }

    pub(super) fn remove_variable(&mut self, name: &str) -> bool {
        let found = self.variable(name);
        if let Some(at) = found {
            self.0.remove(at);
        }
        found.is_some()
    }

    fn variable(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|line| variable_of(line) == Some(name))
    }
}

/// Returns the name of a line that sets a variable.
fn variable_of(line: &str) -> Option<&str> {
    let (name, _) = line.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_go_and_change_beside_others() {
        let mut table = Table::of("MAILTO=\"ops\"\n# mine\n0 1 * * * /bin/true\n");
        assert!(table.set_job("a", "1 * * * * /bin/a"));
        assert!(!table.set_job("a", "1 * * * * /bin/a"));
        assert!(table.set_job("a", "2 * * * * /bin/a"));
        assert_eq!(table.text(), "MAILTO=\"ops\"\n# mine\n0 1 * * * /bin/true\n#Ansible: a\n2 * * * * /bin/a\n");
        assert!(table.set_job("old", "0 1 * * * /bin/true"));
        assert_eq!(table.jobs(), ["old", "a"]);
        assert!(table.remove_job("a") && !table.remove_job("a"));
        assert_eq!(table.text(), "MAILTO=\"ops\"\n# mine\n#Ansible: old\n0 1 * * * /bin/true\n");
    }

    #[test]
    fn variables_have_their_place() {
        let mut table = Table::of("A=\"1\"\n* * * * * x=1 /bin/a\n");
        assert_eq!(table.set_variable("B", "2", Some("A"), None).ok(), Some(true));
        assert_eq!(table.set_variable("C", "3", None, None).ok(), Some(true));
        assert_eq!(table.variables(), ["C", "A", "B"]);
        assert!(table.set_variable("D", "4", Some("nosuch"), None).is_err());
    }
}
