//! Faults that chance found, each by the smallest case that shows it.
