//! Long-running child processes: their output goes to a file, and they end with us.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long anything may take: far more than it does on a busy two-core machine,
/// so that only what never happens fails.
pub const DEADLINE: Duration = Duration::from_secs(180);

/// A child process that is killed when this is dropped, or when the test binary dies.
pub struct Process {
    name: String,
    log: PathBuf,
    child: Mutex<Child>,
}

impl Process {
    /// Starts `command` with its output in `log_dir/NAME.log`.
    pub fn spawn(name: &str, mut command: Command, log_dir: &Path) -> Result<Self, String> {
        let log = log_dir.join(format!("{name}.log"));
        let file =
            File::options().create(true).append(true).open(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let errors = file.try_clone().map_err(|e| format!("{}: {e}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        end_with_us(&mut command);
        let child = command.spawn().map_err(|e| format!("cannot start {name} ({:?}): {e}", command.get_program()))?;
        Ok(Self { name: name.to_owned(), log, child: Mutex::new(child) })
    }

    /// The exit status, once the process has ended.
    pub fn exited(&self) -> Option<ExitStatus> {
        self.child().try_wait().ok().flatten()
    }

    /// The last lines that the process wrote.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = self.log();
        let all: Vec<&str> = text.lines().collect();
        let mut tail = format!("--- last lines of {} ---", self.name);
        for line in &all[all.len().saturating_sub(lines)..] {
            tail.push('\n');
            tail.extend(line.chars().take(400));
        }
        tail
    }

    /// All that the process wrote.
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Ends the process at once.
    pub fn kill(&self) {
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Makes the kernel kill the child when the thread that starts it ends. Scenarios
/// run on the main thread, so that is when the test binary ends, however it does.
pub fn end_with_us(command: &mut Command) {
    // SAFETY: between fork and exec only one async-signal-safe system call is made.
    unsafe {
        command.pre_exec(|| {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
}

/// Whether a process with this id exists.
pub fn running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Polls `probe` until it gives a value. An error after [`DEADLINE`], or as soon as
/// `dead` says why it never will.
pub fn wait_for<T>(
    what: &str,
    dead: impl Fn() -> Option<String>,
    mut probe: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(20);
    loop {
        let last = match probe() {
            Ok(value) => return Ok(value),
            Err(last) => last,
        };
        if let Some(why) = dead() {
            return Err(format!("{what}: {why}"));
        }
        if started.elapsed() > DEADLINE {
            return Err(format!("{what}: not within {} s; last seen: {last}", DEADLINE.as_secs()));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(250));
    }
}
