//! Content that an agent asks for: whole, or what is new of it where the host has another version.

use std::collections::HashMap;
use std::io::{self, SeekFrom};
use std::time::{Duration, Instant};

use kubeon_modules::chunks::{self, Sum};
use kubeon_modules::wire;

use super::Contents;
use super::contents::Opened;
use super::link::{Fault, Link};
use super::packing::Packing;

type SendPiece<'a> = &'a mut dyn FnMut(&mut Link, &[u8]) -> io::Result<()>;

impl Link {
    /// Sends content that the agent asked for, and has another version of as `has` tells.
    pub fn supply(&mut self, sha256: &str, has: &str, contents: &Contents, silence: Duration) -> Result<(), Fault> {
        self.statistics.round_trips += 1;
        if let Err(message) = self.supply_content(sha256, has, contents, silence) {
            // In the midst of content there is no taking back but to say so.
            let missing = wire::message_frame(&wire::Request::Missing { message }).map_err(Fault::Stream)?;
            self.send(&missing, silence);
        }
        Ok(())
    }

    /// Returns why the content is not there, or not whole.
    fn supply_content(
        &mut self,
        sha256: &str,
        has: &str,
        contents: &Contents,
        silence: Duration,
    ) -> Result<(), String> {
        let absent = || format!("nothing here has the SHA-256 {sha256}");
        let mut source = contents.open(sha256).ok_or_else(absent)?.map_err(|error| error.to_string())?;
        let known = chunks::unpacked(has).filter(|known| !known.is_empty());
        let unread = |error: io::Error| format!("read it here: {error}");
        let mut packing = Packing::default();
        let mut piece = |link: &mut Link, bytes: &[u8]| {
            let frame = packing.frame(bytes)?;
            let begun = Instant::now();
            link.send(&frame, silence);
            packing.took_to_send(frame.len(), begun.elapsed());
            Ok(())
        };
        match known {
            None => self.supply_whole(&mut *source, &mut piece).map_err(unread)?,
            Some(known) => {
                let chunks = contents.chunks(sha256).ok_or_else(absent)?.map_err(unread)?;
                self.supply_new(&mut *source, (&chunks, &known), &mut piece, silence).map_err(unread)?;
            }
        }
        self.send(&wire::piece_frame(&[]).map_err(unread)?, silence);
        Ok(())
    }

    fn supply_whole(&mut self, source: &mut dyn Opened, send: SendPiece<'_>) -> io::Result<()> {
        let mut buffer = vec![0; wire::PIECE_BYTES];
        while self.broken.is_none() {
            match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => send(self, &buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends the chunks that are not `known`, and of each run of the others where the host has it.
    fn supply_new(
        &mut self,
        source: &mut dyn Opened,
        (chunks, known): (&[chunks::Chunk], &[chunks::Chunk]),
        send: SendPiece<'_>,
        silence: Duration,
    ) -> io::Result<()> {
        let known: HashMap<(Sum, u32), u64> =
            known.iter().map(|chunk| ((chunk.sum, chunk.size_bytes), chunk.offset_bytes)).collect();
        let mut kept = 0..0;
        let mut piece = Vec::new();
        for chunk in chunks {
            if self.broken.is_some() {
                return Ok(());
            }
            let size_bytes = u64::from(chunk.size_bytes);
            let there = known.get(&(chunk.sum, chunk.size_bytes)).copied();
            if there != Some(kept.end) && !kept.is_empty() {
                self.send(&wire::kept_frame(kept.start, kept.end - kept.start), silence);
                kept = 0..0;
            }
            match there {
                Some(offset_bytes) if kept.is_empty() => kept = offset_bytes..offset_bytes + size_bytes,
                Some(_) => kept.end += size_bytes,
                None => {
                    piece.resize(chunk.size_bytes as usize, 0);
                    source.seek(SeekFrom::Start(chunk.offset_bytes))?;
                    source.read_exact(&mut piece)?;
                    send(self, &piece)?;
                }
            }
        }
        if !kept.is_empty() {
            self.send(&wire::kept_frame(kept.start, kept.end - kept.start), silence);
        }
        Ok(())
    }
}
