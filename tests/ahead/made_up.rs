//! Playbooks that are made up from a number, of tasks that depend on each other in every way.

use std::fmt::Write as _;

/// Numbers from a seed: xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Makes a playbook up.
pub struct Maker {
    random: Random,
    tasks: u64,
    registered: Vec<String>,
    text: String,
}

impl Maker {
    pub fn playbook(seed: u64) -> String {
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut maker = Maker { random, tasks: 0, registered: Vec::new(), text: String::new() };
        for play in 0..1 + maker.random.below(2) {
            maker.play(play);
        }
        maker.text
    }

    fn play(&mut self, play: u64) {
        let keyword = self.random.one_of(&[
            "",
            "",
            "",
            "",
            "  strategy: free\n",
            "  serial: 1\n",
            "  serial: 2\n",
            "  any_errors_fatal: true\n",
            "  max_fail_percentage: 40\n",
            "  force_handlers: true\n",
            "  environment: {TOLD: 'here'}\n",
        ]);
        write!(
            self.text,
            "- name: play {play}\n  hosts: all\n  gather_facts: false\n{keyword}  vars:\n    \
             log: '{{{{ playbook_dir }}}}/out/{{{{ inventory_hostname }}}}'\n    \
             through: '{{{{ r1.stdout | default(\"none\") }}}}'\n  tasks:\n"
        )
        .expect("a text");
        let mut at = 0;
        while at < 6 + self.random.below(10) {
            self.item(4, 2);
            at += 1;
        }
        self.text.push_str("  handlers:\n");
        for handler in ["one", "two"] {
            writeln!(self.text, "    - {{name: {handler}, shell: 'echo handler {handler} >> {{{{ log }}}}'}}")
                .expect("a text");
        }
    }

    fn item(&mut self, indent: usize, depth: u64) {
        if depth > 0 && self.random.below(7) == 0 {
            let blanks = " ".repeat(indent);
            writeln!(self.text, "{blanks}- block:").expect("a text");
            for section in ["", "rescue", "always"] {
                if section.is_empty() || self.random.below(2) == 0 {
                    if !section.is_empty() {
                        writeln!(self.text, "{blanks}  {section}:").expect("a text");
                    }
                    for _ in 0..1 + self.random.below(3) {
                        self.item(indent + 4, depth - 1);
                    }
                }
            }
            let when = self.random.one_of(&["", "", "", "when: inventory_hostname != 'h2'", "ignore_errors: true"]);
            if !when.is_empty() {
                writeln!(self.text, "{blanks}  {when}").expect("a text");
            }
            return;
        }
        self.task(indent);
    }

    fn task(&mut self, indent: usize) {
        let blanks = " ".repeat(indent);
        self.tasks += 1;
        let number = self.tasks;
        let known = match self.registered.len() as u64 {
            0 => "nothing".to_owned(),
            count => self.registered[self.random.below(count) as usize].clone(),
        };
        let action = match self.random.below(25) {
            0..=5 => format!("shell: echo {number} >> {{{{ log }}}}; echo said {number}"),
            6 => format!("shell: echo {number} $TOLD >> {{{{ log }}}}; exit 3"),
            7 => format!("shell: echo {number} >> {{{{ log }}}}; test {{{{ inventory_hostname }}}} != h2"),
            8 => format!("shell: echo {number} {{{{ {known}.stdout | default('none') }}}} >> {{{{ log }}}}"),
            9 => format!("shell: echo {number} {{{{ through }}}} >> {{{{ log }}}}"),
            10 => format!("copy: {{content: 'copy {number}', dest: '{{{{ log }}}}.{}'}}", number % 3),
            11 => "file: {path: '{{ log }}.touched', state: touch, mode: '0600'}".to_owned(),
            12 => format!("lineinfile: {{path: '{{{{ log }}}}', line: 'line {number}', create: true}}"),
            13 => "stat: {path: '{{ log }}.touched'}".to_owned(),
            14 => format!("set_fact: {{fact: '{number} {{{{ fact | default(\"\") }}}}'}}"),
            15 => format!("shell: echo {number} {{{{ fact | default('no fact') }}}} >> {{{{ log }}}}"),
            16 => format!("debug: {{msg: '{number} {{{{ {known} | default(\"none\") | type_debug }}}}'}}"),
            17 => format!(
                "shell: echo {number} \"{{{{ lookup('file', log, errors='ignore') | default('', true) | \
                 regex_replace('\\n', '+') }}}}\" >> {{{{ log }}}}"
            ),
            18 => format!("shell: echo {number} {{{{ hostvars['h1'].{known} is defined }}}} >> {{{{ log }}}}"),
            19 => format!("shell: echo {number} {{{{ ansible_play_hosts | length }}}} >> {{{{ log }}}}"),
            20 => "meta: flush_handlers".to_owned(),
            21 => "file: {path: '{{ log }}.d', state: directory, mode: '0700'}".to_owned(),
            22 => format!("lineinfile: {{path: '{{{{ log }}}}', line: 'line {}', create: true}}", number % 3),
            // What a line that is cut looks like from here. What a task does after that, nobody waits for.
            23 => format!(
                "shell: echo {number} >> {{{{ log }}}}; test {{{{ inventory_hostname }}}} = h3 || kill -9 $PPID"
            ),
            _ => format!("command: /bin/echo {number} {{{{ (log ~ '.touched') is exists }}}}"),
        };
        let is_meta = action.starts_with("meta");
        writeln!(self.text, "{blanks}- name: task {number}\n{blanks}  {action}").expect("a text");
        if is_meta {
            return;
        }
        if action.ends_with("exit 3") && self.random.below(3) > 0 {
            writeln!(self.text, "{blanks}  ignore_errors: true").expect("a text");
        }
        for _ in 0..self.random.below(3) {
            let keyword = match self.random.below(17) {
                0 => "ignore_errors: true".to_owned(),
                1 => format!("when: {known} is defined and {known} is changed"),
                2 => "when: inventory_hostname == 'h1'".to_owned(),
                3 => format!("when: {known} is not defined or {known} is not failed"),
                4 => "when: false".to_owned(),
                5 => "notify: one".to_owned(),
                6 => "notify: [two, one]".to_owned(),
                7 => "changed_when: false".to_owned(),
                8 => format!("failed_when: {known} is defined and {known} is skipped"),
                9 => "tags: [some]".to_owned(),
                10 => "check_mode: true".to_owned(),
                11 => "loop: [x, y]".to_owned(),
                12 => "run_once: true".to_owned(),
                13 => "delegate_to: h3".to_owned(),
                14 => "no_log: true".to_owned(),
                15 => "environment: {TOLD: '{{ inventory_hostname }}'}".to_owned(),
                _ => format!("register: r{}", number % 4),
            };
            let name = keyword.split(':').next().unwrap_or_default();
            // A key that is there already would be given twice.
            let own = self.text.rfind(&format!("- name: task {number}\n")).map_or("", |at| &self.text[at..]);
            if own.contains(&format!("  {name}:")) {
                continue;
            }
            if let Some(register) = keyword.strip_prefix("register: ") {
                self.registered.push(register.to_owned());
            }
            writeln!(self.text, "{blanks}  {keyword}").expect("a text");
        }
    }
}
