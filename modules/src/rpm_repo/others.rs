//! Sections of other files that get in this repository's way.

use crate::apt_repo::others::is_old;
use crate::rpm::files::{DNF_CONF, Section};
use crate::rpm_repo::Site;
use crate::{Change, Plan, Write};

impl Site<'_> {
    /// Whether a section names our repository, or has its name.
    pub(super) fn names_the_same(&self, section: &Section) -> bool {
        section.id == self.args.name || section.is_enabled() && section.has_address(&self.args.uri, &self.architecture)
    }

    /// Takes sections of other files out of service that name the same repository.
    pub(super) fn reconcile(&self, plan: &mut Plan) -> Vec<String> {
        self.take_out(plan, &|section| self.names_the_same(section), &|path, section| {
            let key = section.get("gpgkey").unwrap_or("no key of its own").to_owned();
            format!("`{path}` names the same repository as `{}` with {key}: taken out of service", section.id)
        })
    }

    /// Finds sections that name NVIDIA's paths of old.
    pub(super) fn old(&self, plan: &mut Plan) -> Result<Vec<String>, crate::Error> {
        let is_past = |section: &Section| {
            section.is_enabled()
                && !self.names_the_same(section)
                && section.words("baseurl").iter().any(|url| is_old(url))
        };
        let warning = |path: &str, section: &Section| {
            format!(
                "`{path}` names {}, which NVIDIA no longer serves, so that every command of the package manager may \
                 fail: {}",
                section.words("baseurl").join(", "),
                if self.args.disable_old {
                    "taken out of service"
                } else {
                    "give `disable_old: true` to take it out of service"
                }
            )
        };
        if self.args.disable_old {
            return Ok(self.take_out(plan, &is_past, &warning));
        }
        let mut old = Vec::new();
        for file in self.files.iter().filter(|file| file.path != self.path) {
            for section in file.sections().iter().filter(|section| is_past(section)) {
                plan.warnings.push(warning(&file.path, section));
                if !old.contains(&file.path) {
                    old.push(file.path.clone());
                }
            }
        }
        Ok(old)
    }

    /// Takes sections of other files out of service, and returns in which files.
    fn take_out(
        &self,
        plan: &mut Plan,
        which: &dyn Fn(&Section) -> bool,
        warning: &dyn Fn(&str, &Section) -> String,
    ) -> Vec<String> {
        let mut touched = Vec::new();
        for file in self.files.iter().filter(|file| file.path != self.path) {
            let mut file = file.clone();
            let main = |section: &Section| file.path == DNF_CONF && section.id == "main";
            let found: Vec<Section> = file.sections().into_iter().filter(|one| which(one) && !main(one)).collect();
            if found.is_empty() {
                continue;
            }
            for section in &found {
                plan.warnings.push(warning(&file.path, section));
                // No line comes or goes: where the others are stays true.
                file.text = file.without(section);
            }
            touched.push(file.path.clone());
            plan.changes.push(Change::Write(Write::new(&file.path, file.text.clone())));
        }
        touched
    }
}
