//! What the command of an `exec` handler comes to, where that can be told: one program and its arguments.

use super::document::Value;

/// One program with its arguments, run directly or as all that a shell's script does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple<'a> {
    /// What the kubelet starts, as written: the program, or the shell.
    pub started: &'a str,
    /// Program and arguments.
    pub words: Vec<&'a str>,
    /// Whether a shell runs it, so that `:` and `exit` are commands.
    pub in_shell: bool,
}

/// Shells whose `-c` takes a script in POSIX syntax.
const SHELLS: [&str; 5] = ["sh", "bash", "ash", "dash", "zsh"];

/// Characters that make a script more than words: further commands, expansion, quotes, redirection.
const SYNTAX: [char; 19] =
    [';', '&', '|', '<', '>', '$', '`', '"', '\'', '\\', '(', ')', '{', '}', '*', '?', '[', '#', '\n'];

impl<'a> Simple<'a> {
    /// The command of this `exec` handler; `None` where there is none, or it does more than one thing, or what it does
    /// hangs on quoting or expansion.
    pub fn of(exec: &'a Value<'a>) -> Option<Simple<'a>> {
        let command: Vec<&str> = exec["command"].items().iter().map(Value::as_str).collect::<Option<_>>()?;
        match command.as_slice() {
            [shell, flag, script] if is_script(shell, flag) => {
                let script = script.trim().trim_end_matches(';');
                let mut words: Vec<&str> = script.split_whitespace().collect();
                if words.first() == Some(&"exec") {
                    words.remove(0);
                }
                let plain = !script.contains(SYNTAX) && !words.is_empty();
                plain.then_some(Simple { started: shell, words, in_shell: true })
            }
            [started, ..] => Some(Simple { started, words: command, in_shell: false }),
            [] => None,
        }
    }

    /// Whether it does nothing and succeeds: `true`, in a shell also `:` and `exit 0`.
    pub fn does_nothing(&self) -> bool {
        match self.words.as_slice() {
            [program, ..] if base(program) == "true" => true,
            [":", ..] | ["exit"] | ["exit", "0"] => self.in_shell,
            _ => false,
        }
    }

    /// Seconds, rounded up, that it sleeps and does nothing else: `sleep 10`, `sleep 1.5`, `sleep 2m`.
    pub fn sleeps(&self) -> Option<i64> {
        match self.words.as_slice() {
            [program, time] if base(program) == "sleep" => seconds(time),
            _ => None,
        }
    }
}

/// Seconds, rounded up, that this `exec` handler surely takes: it sleeps, or it is a script that sleeps first. `None`
/// where that cannot be told.
pub fn sleeps_at_least<'a>(exec: &'a Value<'a>) -> Option<i64> {
    if let Some(command) = Simple::of(exec) {
        return command.sleeps();
    }
    let [shell, flag, script] = exec["command"].items() else { return None };
    let (shell, flag, script) = (shell.as_str()?, flag.as_str()?, script.as_str()?);
    let first = script.split([';', '&', '|', '\n']).next()?;
    // `sleep 40 & …` does not wait, and of `sleep 40 | …` or `sleep 40 || …` it is not worth to tell.
    let rest = &script[first.len()..];
    let waits = rest.starts_with("&&") || rest.starts_with([';', '\n']);
    if !is_script(shell, flag) || !waits || first.contains(SYNTAX) {
        return None;
    }
    match first.split_whitespace().collect::<Vec<_>>().as_slice() {
        [program, time] if base(program) == "sleep" => seconds(time),
        _ => None,
    }
}

fn is_script(shell: &str, flag: &str) -> bool {
    SHELLS.contains(&base(shell)) && flag.starts_with('-') && flag.ends_with('c')
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The argument of `sleep` in whole seconds, rounded up; `None` for what is no decimal number with an optional unit, or
/// more than a year.
fn seconds(text: &str) -> Option<i64> {
    let (number, unit) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1),
        b'm' => (&text[..text.len() - 1], 60),
        b'h' => (&text[..text.len() - 1], 3600),
        b'd' => (&text[..text.len() - 1], 86_400),
        _ => (text, 1),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.len() <= 9 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let number = |part: &str| if part.is_empty() { Some(0) } else { part.parse::<i64>().ok() };
    let scale = fraction.bytes().fold(1_i64, |scale, _| scale * 10);
    let part = number(fraction)?.checked_mul(unit)?;
    let rounded_up = part / scale + i64::from(part % scale > 0);
    let seconds = number(whole)?.checked_mul(unit)?.checked_add(rounded_up)?;
    (seconds <= 366 * 86_400).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged<T>(command: &[&str], judge: impl Fn(&Simple<'_>) -> T) -> Option<T> {
        let text = serde_json::json!({"command": command}).to_string();
        let exec = Value::parse(&text).unwrap();
        Simple::of(&exec).map(|simple| judge(&simple))
    }

    #[test]
    fn what_does_nothing() {
        let nothing = |command: &[&str]| judged(command, |simple| simple.does_nothing()) == Some(true);
        for command in [
            &["true"][..],
            &["/bin/true"],
            &["/usr/bin/true", "ignored"],
            &["sh", "-c", "true"],
            &["/bin/sh", "-c", ":"],
            &["/bin/bash", "-ec", " exit 0; "],
            &["ash", "-c", "exit"],
        ] {
            assert!(nothing(command), "{command:?}");
        }
        // `:` and `exit` are no programs: outside a shell they fail.
        for command in [
            &[":"][..],
            &["exit", "0"],
            &["sh", "-c", "exit 1"],
            &["sh", "-c", "true && check"],
            &["sh", "-c", "test -f /ready || exit 0"],
            &["sh", "-c", "$CHECK"],
            &["sh", "true"],
            &["false"],
            &["trueish"],
            &[],
        ] {
            assert!(!nothing(command), "{command:?}");
        }
    }

    #[test]
    fn how_long_it_sleeps() {
        let sleeps = |command: &[&str]| judged(command, |simple| simple.sleeps()).flatten();
        assert_eq!(sleeps(&["sleep", "10"]), Some(10));
        assert_eq!(sleeps(&["/bin/sleep", "10s"]), Some(10));
        assert_eq!(sleeps(&["/bin/sh", "-c", "sleep 15"]), Some(15));
        assert_eq!(sleeps(&["bash", "-ec", " /bin/sleep  7 "]), Some(7));
        assert_eq!(sleeps(&["bash", "-ec", " exec /bin/sleep  7; "]), Some(7));
        assert_eq!(sleeps(&["sleep", "1.5"]), Some(2));
        assert_eq!(sleeps(&["sleep", ".5"]), Some(1));
        assert_eq!(sleeps(&["sleep", "2.0"]), Some(2));
        assert_eq!(sleeps(&["sleep", "2m"]), Some(120));
        assert_eq!(sleeps(&["sleep", "0.5m"]), Some(30));
        assert_eq!(sleeps(&["sleep", "1h"]), Some(3600));
        assert_eq!(sleeps(&["sleep", "0"]), Some(0));
    }

    #[test]
    fn what_else_is_done_is_no_sleep() {
        let sleeps = |command: &[&str]| judged(command, |simple| simple.sleeps()).flatten();
        for command in [
            &["sh", "-c", "sleep 5; nginx -s quit"][..],
            &["sh", "-c", "sleep 5 && kill 1"],
            &["sh", "-c", "sleep $SECONDS"],
            &["sleep", "5", "6"],
            &["sleep"],
            &["sleep", "infinity"],
            &["sleep", "-1"],
            &["sleep", "1.2.3"],
            &["sleep", "s"],
            &["sleep", "."],
            &["sleep", "é"],
            &["sleep", "99999999999999999999"],
            &["sleep", "999999999d"],
            &["sleepy", "5"],
        ] {
            assert_eq!(sleeps(command), None, "{command:?}");
        }
    }

    #[test]
    fn a_script_that_sleeps_first_takes_that_long() {
        let sleeps = |command: &[&str]| {
            let text = serde_json::json!({"command": command}).to_string();
            sleeps_at_least(&Value::parse(&text).unwrap())
        };
        assert_eq!(sleeps(&["sleep", "10"]), Some(10));
        assert_eq!(sleeps(&["sh", "-c", "sleep 5; nginx -s quit"]), Some(5));
        assert_eq!(sleeps(&["/bin/bash", "-ec", " /bin/sleep 2m && kill $PID"]), Some(120));
        assert_eq!(sleeps(&["sh", "-c", "sleep 7\nwait"]), Some(7));
        for command in [
            &["sh", "-c", "nginx -s quit; sleep 5"][..],
            &["sh", "-c", "sleep 5 & wait"],
            &["sh", "-c", "sleep 5 | cat"],
            &["sh", "-c", "sleep 5 || true"],
            &["sh", "-c", "sleep $N; true"],
            &["sh", "-c", "sleep 5 6; true"],
            &["sh", "-c", "sleep infinity; true"],
            &["sh", "-c", ""],
            &["sh", "sleep 5; true"],
            &["python", "-c", "sleep 5; x"],
        ] {
            assert_eq!(sleeps(command), None, "{command:?}");
        }
    }

    #[test]
    fn a23_nonsense_is_no_command() {
        for text in ["null", "7", "{}", r#"{"command":null}"#, r#"{"command":"true"}"#, r#"{"command":["true",1]}"#] {
            let exec = Value::parse(text).unwrap();
            assert_eq!(Simple::of(&exec), None, "{text}");
        }
    }
}
