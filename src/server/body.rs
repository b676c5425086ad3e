//! Reading a body within bounds of size, time and memory (TRAPS A08).

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

/// Permits of the memory semaphore are for this many bytes.
const UNIT: usize = 1024;
/// A body's length is believed up to here when its buffer is made; what claims to be longer must first send it.
const MAX_PRESIZED: usize = 1 << 20;
/// How long, and up to how many times the limit, an oversized body is read and thrown away before it is refused: a
/// client that is still writing when the connection closes may never see the answer.
const DISCARD: (Duration, usize) = (Duration::from_secs(1), 2);

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is larger than allowed.
    #[error("the body is larger than {0} bytes, see --max-body-bytes")]
    TooLarge(usize),
    /// It did not arrive in time.
    #[error("the body did not arrive in time")]
    TimedOut,
    /// The connection broke.
    #[error("the body broke off")]
    BrokeOff,
    /// All bodies together hold as much memory as they may.
    #[error("too many bytes are waiting to be decided on")]
    NoMemory,
}

/// A body and the memory it may take.
pub struct Received {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Given back when the review is answered.
    pub memory: Option<OwnedSemaphorePermit>,
}

/// Bytes that a decoded value takes at most for each character of the body that begins one. Worst are lists and objects of
/// one element each: a list makes room for four at once.
const DECODED: usize = 128;

impl Received {
    /// Takes the memory that the body will need when it is decoded, from the same supply as the bytes: a list of empty
    /// lists takes forty times the room of its text.
    ///
    /// # Errors
    /// There is not as much left.
    pub fn make_room(&mut self, memory: &Arc<Semaphore>) -> Result<(), BodyError> {
        let mut values = values_at_most(&self.bytes);
        if values > self.bytes.len() / FEW {
            values = values_outside_strings(&self.bytes);
        }
        let wanted = u32::try_from((values * DECODED).div_ceil(UNIT)).unwrap_or(u32::MAX);
        let more = memory.clone().try_acquire_many_owned(wanted).map_err(|_full| BodyError::NoMemory)?;
        match &mut self.memory {
            Some(held) => held.merge(more),
            None => self.memory = Some(more),
        }
        Ok(())
    }
}

/// A body with more values than one in so many bytes is looked at more closely: manifests have one in about 25.
const FEW: usize = 16;

/// How many values but the first the text may begin: each follows one of these, and those within strings are counted for
/// good measure.
fn values_at_most(text: &[u8]) -> usize {
    // Sums that stay within a byte are made many at a time.
    text.chunks(255).map(|chunk| usize::from(chunk.iter().copied().map(begins).sum::<u8>())).sum()
}

/// The same without those within strings: an argument that is a long list separated by commas takes no more room than
/// its text.
fn values_outside_strings(text: &[u8]) -> usize {
    let (mut within, mut escaped, mut values) = (false, false, 0);
    for byte in text.iter().copied() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = within,
            b'"' => within = !within,
            _ if within => {}
            _ => values += usize::from(begins(byte)),
        }
    }
    values
}

fn begins(byte: u8) -> u8 {
    u8::from(byte == b',') + u8::from(byte | 0x20 == b'{')
}

/// The memory of all bodies together, at least this many bytes.
pub fn memory(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS)))
}

/// Reads a body of at most `limit` bytes until `until`. Memory is taken as bytes arrive, so that nobody holds any by
/// mere promise.
///
/// # Errors
/// The body is too large, too slow, broken off, or there is no memory for it.
pub async fn read(
    mut body: Body,
    limit: usize,
    memory: &Arc<Semaphore>,
    until: Instant,
) -> Result<Received, BodyError> {
    let claimed = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if claimed > limit {
        discard(body, limit).await;
        return Err(BodyError::TooLarge(limit));
    }
    let mut received = Received { bytes: Vec::with_capacity(claimed.min(MAX_PRESIZED)), memory: None };
    loop {
        let frame = timeout_at(until, body.frame()).await.map_err(|_elapsed| BodyError::TimedOut)?;
        let Some(frame) = frame else { return Ok(received) };
        let Ok(data) = frame.map_err(|_broken| BodyError::BrokeOff)?.into_data() else { continue };
        let length = received.bytes.len() + data.len();
        if length > limit {
            drop(received);
            discard(body, limit).await;
            return Err(BodyError::TooLarge(limit));
        }
        let held = received.memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = u32::try_from(length.div_ceil(UNIT).saturating_sub(held)).unwrap_or(u32::MAX);
        if wanted > 0 {
            let more = memory.clone().try_acquire_many_owned(wanted).map_err(|_full| BodyError::NoMemory)?;
            match &mut received.memory {
                Some(held) => held.merge(more),
                None => received.memory = Some(more),
            }
        }
        received.bytes.extend_from_slice(&data);
    }
}

async fn discard(mut body: Body, limit: usize) {
    let (patience, times) = DISCARD;
    let all = async {
        let mut left = limit.saturating_mul(times);
        while let Some(Ok(frame)) = body.frame().await {
            match frame.data_ref().map_or(Some(left), |data| left.checked_sub(data.len())) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // Out of patience or at the end: the answer is the same.
    let _ = timeout(patience, all).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use futures::stream;

    use super::*;

    fn chunks(count: usize, bytes: usize) -> Body {
        Body::from_stream(stream::iter((0..count).map(move |_| Ok::<_, Infallible>(Bytes::from(vec![b'x'; bytes])))))
    }

    async fn outcome(body: Body, limit: usize, memory: &Arc<Semaphore>) -> Result<usize, BodyError> {
        let until = Instant::now() + Duration::from_secs(3600);
        read(body, limit, memory, until).await.map(|received| received.bytes.len())
    }

    #[tokio::test]
    async fn a08_up_to_the_limit_and_not_a_byte_more_with_or_without_a_length() {
        let memory = memory(1 << 20);
        assert_eq!(outcome(chunks(4, 25), 100, &memory).await, Ok(100));
        assert_eq!(outcome(chunks(4, 26), 100, &memory).await, Err(BodyError::TooLarge(100)));
        assert_eq!(outcome(Body::from("x".repeat(100)), 100, &memory).await, Ok(100));
        assert_eq!(outcome(Body::from("x".repeat(101)), 100, &memory).await, Err(BodyError::TooLarge(100)));
    }

    #[tokio::test]
    async fn j07_memory_is_taken_as_bytes_arrive_and_given_back() {
        let memory = memory(10 * UNIT);
        let until = Instant::now() + Duration::from_secs(3600);
        let first = read(chunks(6, UNIT), 1 << 20, &memory, until).await.unwrap();
        assert_eq!(memory.available_permits(), 4);
        assert_eq!(outcome(chunks(5, UNIT), 1 << 20, &memory).await, Err(BodyError::NoMemory));
        assert_eq!(outcome(chunks(4, UNIT), 1 << 20, &memory).await, Ok(4 * UNIT));
        drop(first);
        assert_eq!(memory.available_permits(), 10);
    }

    #[tokio::test]
    async fn j07_what_a_body_becomes_when_it_is_decoded_takes_memory_too() {
        let memory = memory(10 * UNIT);
        let until = Instant::now() + Duration::from_secs(3600);
        let mut plain = read(Body::from("x".repeat(UNIT)), 1 << 20, &memory, until).await.unwrap();
        assert_eq!(plain.make_room(&memory), Ok(()));
        assert_eq!(memory.available_permits(), 9);
        // 48 values.
        let mut lists = read(Body::from("[[],".repeat(16)), 1 << 20, &memory, until).await.unwrap();
        assert_eq!(lists.make_room(&memory), Ok(()));
        assert_eq!(memory.available_permits(), 9 - 1 - 48 * DECODED / UNIT);
        let mut many = read(Body::from("[".repeat(UNIT / 2)), 1 << 20, &memory, until).await.unwrap();
        assert_eq!(many.make_room(&memory), Err(BodyError::NoMemory));
        drop((plain, lists, many));
        assert_eq!(memory.available_permits(), 10);
    }

    #[tokio::test]
    async fn l05_what_stands_within_strings_is_no_value() {
        let memory = memory(100 * UNIT);
        let until = Instant::now() + Duration::from_secs(3600);
        // An escaped quote ends no string, an escaped backslash before a quote does.
        for (text, values) in [
            (format!(r#"["{}"]"#, ",{[".repeat(UNIT)), 1),
            (format!(r#"["\"{}"]"#, ",{[".repeat(UNIT)), 1),
            (format!(r#"["\\",[{}]"#, ",".repeat(300)), 303),
        ] {
            let mut body = read(Body::from(text.clone()), 1 << 20, &memory, until).await.unwrap();
            let before = memory.available_permits();
            assert_eq!(body.make_room(&memory), Ok(()));
            assert_eq!(before - memory.available_permits(), (values * DECODED).div_ceil(UNIT), "{text:.20}");
        }
    }

    #[tokio::test]
    async fn a_body_that_never_comes_is_given_up() {
        let body = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let read = read(body, 100, &memory(1024), Instant::now()).await;
        assert_eq!(read.map(|_| ()).unwrap_err(), BodyError::TimedOut);
    }
}
