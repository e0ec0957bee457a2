//! What the system allows this process: as many descriptors as it may have, and no core dumps, which would hold secrets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is assumed where the system names no number.
const UNLIMITED: u64 = 1 << 20;

/// Raises the soft limit of open descriptors to the hard one, and returns what is in force.
pub fn descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, "the limit of open files stays at {:?}", limit.current);
    }
    let in_force = getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED).min(UNLIMITED);
    usize::try_from(in_force).unwrap_or(usize::MAX)
}

/// Makes sure that a crash writes no memory to a disk.
pub fn no_core_dumps() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "core dumps cannot be turned off; they would hold secrets");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_raised_as_far_as_they_may_be() {
        let had = getrlimit(Resource::Nofile);
        let now = descriptors();
        assert_eq!(getrlimit(Resource::Nofile).current, had.maximum);
        assert!(now >= 1_024);
        no_core_dumps();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
    }
}
