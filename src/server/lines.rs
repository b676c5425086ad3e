//! Output that never slows an answer: a bounded queue of lines and the thread that writes them (TRAPS K06).
//!
//! A reader that is too slow, a full disk or a closed output cost lines, the oldest first, and a counter; never time
//! in a review and never the process.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus::IntCounter;

/// A handle of the queue; clones share it.
#[derive(Clone)]
pub struct Lines {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    capacity: usize,
    dropped: IntCounter,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    writing: bool,
    /// Whether the writer waits for the next line, and not for a few of them.
    idle: bool,
    /// How many wait for the end of the queue.
    flushing: usize,
}

/// How long the writer lets lines gather after it wrote some: waking it costs a review more than its line does.
const GATHER: Duration = Duration::from_millis(5);

impl Lines {
    /// A queue of at most `capacity` bytes, written to `output` by a thread of its own. Lines that could not be kept or
    /// written are counted in `dropped`.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn to(output: impl Write + Send + 'static, capacity: usize, dropped: IntCounter) -> io::Result<Lines> {
        let queue = Mutex::new(Queue::default());
        let shared = Arc::new(Shared { queue, changed: Condvar::new(), capacity, dropped });
        let writer = shared.clone();
        std::thread::Builder::new().name("log-writer".to_owned()).spawn(move || writer.write_forever(output))?;
        Ok(Lines { shared })
    }

    /// Adds a line, its line feed included. Never blocks on the output.
    pub fn push(&self, line: Vec<u8>) {
        let shared = &*self.shared;
        let mut queue = shared.lock();
        queue.bytes += line.len();
        queue.lines.push_back(line);
        while queue.bytes > shared.capacity {
            let Some(oldest) = queue.lines.pop_front() else { break };
            queue.bytes -= oldest.len();
            shared.dropped.inc();
        }
        let wakes = queue.idle || queue.bytes > shared.capacity / 2;
        drop(queue);
        if wakes {
            shared.changed.notify_all();
        }
    }

    /// Waits until everything is written, no longer than this; for the end of the process.
    pub fn flush(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut queue = self.shared.lock();
        queue.flushing += 1;
        self.shared.changed.notify_all();
        while queue.writing || !queue.lines.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.flushing -= 1;
    }
}

impl Shared {
    /// A panic elsewhere while the lock was held leaves the queue usable.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_forever(&self, mut output: impl Write) {
        loop {
            let mut queue = self.lock();
            while queue.lines.is_empty() {
                queue.idle = true;
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            queue.idle = false;
            let lines = std::mem::take(&mut queue.lines);
            queue.bytes = 0;
            queue.writing = true;
            drop(queue);
            for line in lines {
                if output.write_all(&line).is_err() {
                    self.dropped.inc();
                }
            }
            // What cannot be flushed was counted when it could not be written, or will be at the next line.
            let _ = output.flush();
            let mut queue = self.lock();
            queue.writing = false;
            self.changed.notify_all();
            let gather = |queue: &mut Queue| queue.flushing == 0 && queue.bytes <= self.capacity / 2;
            drop(self.changed.wait_timeout_while(queue, GATHER, gather));
        }
    }
}

/// One event of `tracing`, collected until its writer is dropped, so that lines stay whole.
pub struct EventWriter {
    line: Vec<u8>,
    lines: Lines,
}

impl Write for EventWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            self.lines.push(std::mem::take(&mut self.line));
        }
    }
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for Lines {
    type Writer = EventWriter;

    fn make_writer(&'a self) -> EventWriter {
        EventWriter { line: Vec::new(), lines: self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn counter() -> IntCounter {
        IntCounter::new("dropped", "dropped").unwrap()
    }

    struct Chunks(mpsc::SyncSender<Vec<u8>>);
    impl Write for Chunks {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn k06_a_stuck_output_costs_the_oldest_lines_and_no_time() {
        let (sender, receiver) = mpsc::sync_channel(0);
        let dropped = counter();
        let lines = Lines::to(Chunks(sender), 8, dropped.clone()).unwrap();
        lines.push(b"first\n".to_vec());
        // The writer now holds the first line, for nobody receives.
        while !lines.shared.lock().writing {
            std::thread::yield_now();
        }
        for line in ["aaa\n", "bbb\n", "ccc\n"] {
            lines.push(line.as_bytes().to_vec());
        }
        assert_eq!(dropped.get(), 1);
        let seen: Vec<_> = (0..3).map(|_| receiver.recv().unwrap()).collect();
        assert_eq!(seen, [b"first\n".to_vec(), b"bbb\n".to_vec(), b"ccc\n".to_vec()]);
        lines.flush(Duration::from_secs(60));
    }

    #[test]
    fn lines_that_come_after_others_are_written_without_being_asked_for() {
        let (sender, receiver) = mpsc::sync_channel(8);
        let lines = Lines::to(Chunks(sender), 1 << 20, counter()).unwrap();
        for line in ["a\n", "b\n", "c\n"] {
            lines.push(line.as_bytes().to_vec());
            assert_eq!(receiver.recv_timeout(Duration::from_secs(60)).unwrap(), line.as_bytes());
        }
    }

    #[test]
    fn k06_a_closed_output_is_counted_and_survived() {
        let (sender, receiver) = mpsc::sync_channel(1);
        drop(receiver);
        let dropped = counter();
        let lines = Lines::to(Chunks(sender), 1024, dropped.clone()).unwrap();
        lines.push(b"a\n".to_vec());
        lines.push(b"b\n".to_vec());
        lines.flush(Duration::from_secs(60));
        assert_eq!(dropped.get(), 2);
    }
}
