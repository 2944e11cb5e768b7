//! What befalls a simulated host, all of it told by a seed and the host's name.

use std::time::Duration;

/// What a fleet's hosts may meet.
#[derive(Debug, Clone, clap::Args)]
pub struct Weather {
    /// Everything random follows from it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// An answer takes up to so many microseconds.
    #[arg(long, default_value_t = 0)]
    pub delay_us: u64,
    /// How many hosts of a hundred are slow.
    #[arg(long, default_value_t = 0)]
    pub slow_percent: u64,
    /// How many milliseconds a slow host takes for an answer.
    #[arg(long, default_value_t = 50)]
    pub slow_ms: u64,
    /// How many hosts of a hundred are lost in the midst of the run.
    #[arg(long, default_value_t = 0)]
    pub lost_percent: u64,
    /// How many tasks a run has, for the moment at which hosts are lost.
    #[arg(long, default_value_t = 20)]
    pub tasks: u64,
}

/// When a connection breaks, by the number of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Instead of the greeting.
    AtStart,
    /// The request has come; nothing is done.
    Before(u64),
    /// The task is done; its answer is lost.
    After(u64),
    /// The task is done; half of its answer arrives.
    Within(u64),
}

/// What befalls one connection.
#[derive(Debug, Clone)]
pub struct Fate {
    /// The wait before each answer is random below this.
    delay: Duration,
    pub slow: Option<Duration>,
    pub breaks: Option<Break>,
    /// Answers are written in pieces of so many bytes.
    pub piece_bytes: usize,
    random: Random,
}

impl Fate {
    /// Returns the fate of a host's connection; `earlier` is how many it has had.
    pub fn of(weather: &Weather, host: &str, earlier: u64) -> Fate {
        let mut random = Random(host.bytes().fold(weather.seed, |sum, byte| sum.wrapping_mul(257) ^ u64::from(byte)));
        let slow = (random.below(100) < weather.slow_percent).then(|| Duration::from_millis(weather.slow_ms));
        let is_lost = random.below(100) < weather.lost_percent;
        let at = random.below(weather.tasks);
        let kind = match random.below(4) {
            0 => Break::AtStart,
            1 => Break::Before(at),
            2 => Break::After(at),
            _ => Break::Within(at),
        };
        let stays_away = random.below(2) == 0;
        let breaks = match (is_lost, earlier) {
            (true, 0) => Some(kind),
            (true, _) if stays_away => Some(Break::AtStart),
            _ => None,
        };
        let piece_bytes = if weather.lost_percent > 0 && random.below(4) == 0 { 7 } else { usize::MAX };
        Fate { delay: Duration::from_micros(weather.delay_us), slow, breaks, piece_bytes, random }
    }

    /// Returns how long the next answer takes.
    pub fn next_delay(&mut self) -> Duration {
        let most = u64::try_from(self.delay.as_micros()).unwrap_or(u64::MAX);
        self.slow.unwrap_or_default() + Duration::from_micros(self.random.below(most.max(1)))
    }
}

/// Numbers that look random and follow from the first. Source: SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`; 0 when that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }
}
