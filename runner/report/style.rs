//! Colours, where a terminal shows them.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    Ok,
    Changed,
    Skip,
    Error,
    Unreachable,
    Warn,
    Deprecate,
    Debug,
    Added,
    Removed,
    Hunk,
}

#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub on: bool,
}

impl Style {
    /// Returns the text in a colour: Ansible's own, so that nobody has to learn new ones.
    pub fn paint(self, text: &str, color: Color) -> String {
        if !self.on {
            return text.to_owned();
        }
        let code = match color {
            Color::Ok | Color::Added => "0;32",
            Color::Changed => "0;33",
            Color::Skip | Color::Hunk => "0;36",
            Color::Error | Color::Removed => "0;31",
            Color::Unreachable => "1;31",
            Color::Warn => "1;35",
            Color::Deprecate => "0;35",
            Color::Debug => "1;30",
        };
        // Each line by itself, so that a cut one does not colour what follows.
        let lines: Vec<String> = text.split('\n').map(|line| format!("\x1b[{code}m{line}\x1b[0m")).collect();
        lines.join("\n")
    }
}

/// Rows and columns of a terminal that does not say how large it is.
const USUAL_SIZE: (usize, usize) = (24, 80);

/// Returns the rows and columns of the terminal that is this program's standard output.
pub fn terminal_size() -> (usize, usize) {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes one `winsize`, which outlives the call.
    let answer = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) };
    if answer != 0 || size.ws_col == 0 {
        return USUAL_SIZE;
    }
    (usize::from(size.ws_row), usize::from(size.ws_col))
}
