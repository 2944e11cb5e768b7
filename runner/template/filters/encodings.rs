//! Text as bytes in the encodings that Python's names stand for.

/// An encoding of text.
#[derive(Clone, Copy)]
pub(super) enum Encoding {
    Utf8,
    Ascii,
    Latin1,
    /// Little endian; with a mark of its byte order when written, and either order when read.
    Utf16,
    Utf16Le,
    Utf16Be,
}

impl Encoding {
    /// Returns the encoding that Python knows by this name; `None` for one that is not known here.
    pub fn named(name: &str) -> Option<Encoding> {
        Some(match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "utf-8" | "utf8" => Encoding::Utf8,
            "ascii" | "us-ascii" => Encoding::Ascii,
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" => Encoding::Latin1,
            "utf-16" | "utf16" => Encoding::Utf16,
            "utf-16-le" | "utf-16le" => Encoding::Utf16Le,
            "utf-16-be" | "utf-16be" => Encoding::Utf16Be,
            _ => return None,
        })
    }

    /// Returns the text's bytes; the first character that the encoding lacks as an error.
    pub fn encoded(self, text: &str) -> Result<Vec<u8>, char> {
        let within = |last: u32| {
            text.chars().map(|c| u8::try_from(u32::from(c)).ok().filter(|_| u32::from(c) <= last).ok_or(c)).collect()
        };
        match self {
            Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
            Encoding::Ascii => within(0x7f),
            Encoding::Latin1 => within(0xff),
            Encoding::Utf16 => Ok([&[0xff, 0xfe], units(text, u16::to_le_bytes).as_slice()].concat()),
            Encoding::Utf16Le => Ok(units(text, u16::to_le_bytes)),
            Encoding::Utf16Be => Ok(units(text, u16::to_be_bytes)),
        }
    }

    /// Returns the text that the bytes are; `None` when they are none in this encoding.
    pub fn decoded(self, bytes: &[u8]) -> Option<String> {
        match self {
            Encoding::Utf8 => String::from_utf8(bytes.to_vec()).ok(),
            Encoding::Ascii => bytes.is_ascii().then(|| bytes.iter().map(|&byte| char::from(byte)).collect()),
            Encoding::Latin1 => Some(bytes.iter().map(|&byte| char::from(byte)).collect()),
            Encoding::Utf16 => match bytes {
                [0xfe, 0xff, rest @ ..] => Encoding::Utf16Be.decoded(rest),
                [0xff, 0xfe, rest @ ..] | rest => Encoding::Utf16Le.decoded(rest),
            },
            Encoding::Utf16Le => from_units(bytes, u16::from_le_bytes),
            Encoding::Utf16Be => from_units(bytes, u16::from_be_bytes),
        }
    }
}

fn units(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}

fn from_units(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let pairs = bytes.chunks_exact(2);
    let is_whole = pairs.remainder().is_empty();
    let text = String::from_utf16(&pairs.map(|pair| unit([pair[0], pair[1]])).collect::<Vec<_>>()).ok()?;
    is_whole.then_some(text)
}
