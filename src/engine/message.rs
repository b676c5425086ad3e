//! The denial as a person reads it: every violation in one message, because only the first webhook's error reaches
//! the user (TRAPS A06).

use super::finding::Action;
use super::request::Request;
use super::text::printable;
use super::verdict::Judged;

/// Most violations in one message.
const MAX_VIOLATIONS: usize = 20;

/// Longest message, bytes.
const MAX_BYTES: usize = 4096;

/// The message of a denial; `None` where nothing denies.
pub fn denial(request: &Request<'_>, findings: &[Judged]) -> Option<String> {
    let denied: Vec<&Judged> = findings.iter().filter(|judged| judged.action == Action::Deny).collect();
    if denied.is_empty() {
        return None;
    }
    let place =
        if request.namespace.is_empty() { String::new() } else { format!("{}/", printable(&request.namespace)) };
    let (count, plural) = (denied.len(), if denied.len() == 1 { "violation" } else { "violations" });
    let name = printable(&request.display_name());
    let kind = printable(request.parent().map_or(&request.kind, |parent| parent.kind));
    let mut message = format!("Plimsoll found {count} {plural} in {kind} {place}{name}:");
    for (index, judged) in denied.iter().enumerate() {
        let finding = &judged.finding;
        let mut entry = format!("\n[{}] {}: {}", finding.rule, finding.pointer, finding.message);
        if let Some(mend) = &finding.mend {
            entry.push_str("\n  mend it with:");
            for line in mend.lines() {
                entry.push_str("\n    ");
                entry.push_str(line);
            }
        }
        // Room stays for the last line.
        if index == MAX_VIOLATIONS || message.len() + entry.len() > MAX_BYTES - 16 {
            message.push_str(&format!("\n+{} more", count - index));
            break;
        }
        message.push_str(&entry);
    }
    Some(message)
}
