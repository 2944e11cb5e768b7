//! Which facts `gather_subset` asks for.

use crate::{Error, ErrorKind};

macro_rules! subsets {
    ($($variant:ident $name:literal $min:literal [$($fact:literal)*];)*) => {
        /// A group of facts that is gathered as one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Subset {
            $($variant,)*
        }

        /// In the order in which they are gathered.
        const ALL: &[Subset] = &[$(Subset::$variant,)*];

        impl Subset {
            fn name(self) -> &'static str {
                match self { $(Subset::$variant => $name,)* }
            }

            /// Whether it is gathered unless `!min` is asked.
            fn minimal(self) -> bool {
                match self { $(Subset::$variant => $min,)* }
            }

            /// Single facts whose name asks for the whole group.
            fn facts(self) -> &'static [&'static str] {
                match self { $(Subset::$variant => &[$($fact,)*],)* }
            }
        }
    };
}

// Source: the collectors of ansible-core 2.19 with their fact ids, and its `setup`'s minimal subset.
subsets! {
    Platform "platform" true ["system" "kernel" "kernel_version" "machine" "python_version" "architecture" "machine_id"];
    Distribution "distribution" true
        ["distribution_version" "distribution_release" "distribution_major_version" "os_family"];
    Lsb "lsb" true [];
    Selinux "selinux" true [];
    Apparmor "apparmor" true [];
    Chroot "chroot" false ["is_chroot"];
    Fips "fips" true [];
    Python "python" true [];
    Caps "caps" true ["system_capabilities" "system_capabilities_enforced"];
    PkgMgr "pkg_mgr" true [];
    ServiceMgr "service_mgr" true [];
    Cmdline "cmdline" true [];
    DateTime "date_time" true [];
    Env "env" true [];
    Loadavg "loadavg" false [];
    SshPubKeys "ssh_pub_keys" true
        ["ssh_host_pub_keys" "ssh_host_key_dsa_public" "ssh_host_key_rsa_public" "ssh_host_key_ecdsa_public"
         "ssh_host_key_ed25519_public"];
    User "user" true
        ["user_id" "user_uid" "user_gid" "user_gecos" "user_dir" "user_shell" "real_user_id" "effective_user_id"
         "effective_group_ids"];
    Systemd "systemd" false [];
    Virtual "virtual" false
        ["virtualization_type" "virtualization_role" "virtualization_tech_guest" "virtualization_tech_host"];
    Hardware "hardware" false ["processor" "processor_cores" "processor_count" "mounts" "devices" "dmi" "memory"];
    Dns "dns" true [];
    Network "network" false
        ["interfaces" "default_ipv4" "default_ipv6" "all_ipv4_addresses" "all_ipv6_addresses"];
    Iscsi "iscsi" false ["nvme" "fibre_channel_wwn"];
    Local "local" true [];
    Facter "facter" false [];
    Ohai "ohai" false [];
}

impl Subset {
    /// Returns what these words ask for, in the order of gathering: `all`, `min`, names of subsets and of single
    /// facts, each with `!` to leave it out. A minimal subset comes along unless `!min` is among them; a name wins
    /// over a `!` of a larger group.
    ///
    /// # Errors
    /// [`ErrorKind::Arguments`] for a name that is none; one after `!` is ignored, as Ansible does.
    pub(crate) fn asked(words: &[String]) -> Result<Vec<Subset>, Error> {
        let mut named = Vec::new();
        let mut added: Vec<Subset> = ALL.iter().copied().filter(|subset| subset.minimal()).collect();
        let mut left_out = Vec::new();
        for word in words {
            match word.as_str() {
                "min" => {}
                "all" => added.extend(ALL),
                "!min" => left_out.extend(ALL.iter().filter(|subset| subset.minimal())),
                "!all" => left_out.extend(ALL.iter().filter(|subset| !subset.minimal())),
                word => match word.strip_prefix('!') {
                    Some(word) => left_out.extend(Subset::of(word)),
                    None => named.push(Subset::of(word).ok_or_else(|| unknown(word))?),
                },
            }
        }
        let gathered = |subset: &Subset| named.contains(subset) || added.contains(subset) && !left_out.contains(subset);
        Ok(ALL.iter().copied().filter(gathered).collect())
    }

    fn of(word: &str) -> Option<Subset> {
        ALL.iter().copied().find(|subset| subset.name() == word || subset.facts().contains(&word))
    }
}

fn unknown(word: &str) -> Error {
    let names: Vec<&str> = ALL.iter().map(|subset| subset.name()).collect();
    Error::new(
        ErrorKind::Arguments,
        // Ansible's words, which playbooks look for.
        format!("Bad subset '{word}' given to Ansible. gather_subset options allowed: all, min, {}", names.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Vec<Subset> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Subset::asked(&words).expect("known words")
    }

    #[test]
    fn words_add_and_leave_out_as_ansible_has_it() {
        assert_eq!(asked(&["all"]).len(), ALL.len());
        assert!(!asked(&["min"]).contains(&Subset::Hardware) && asked(&["min"]).contains(&Subset::User));
        assert_eq!(asked(&["!all"]), asked(&["min"]));
        assert_eq!(asked(&["!all", "!min", "network"]), [Subset::Network]);
        assert_eq!(asked(&["!all", "!min", "mounts"]), [Subset::Hardware]);
        assert!(!asked(&["all", "!hardware"]).contains(&Subset::Hardware));
        assert!(asked(&["!no_such"]).contains(&Subset::User));
        assert!(Subset::asked(&["no_such".to_owned()]).is_err());
    }
}
