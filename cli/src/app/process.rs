//! Limits of this process: as many descriptors as the system allows, and no core dumps, because they would contain secrets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Assumed if the system reports no limit.
const UNLIMITED: u64 = 1 << 20;

/// Raises the soft limit of open descriptors to the hard one, and returns what is in force.
pub fn descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, "the limit of open files stays at {:?}", limit.current);
    }
    let in_force = getrlimit(Resource::Nofile)
        .current
        .unwrap_or(UNLIMITED)
        .min(UNLIMITED);
    usize::try_from(in_force).unwrap_or(usize::MAX)
}

/// Turns off core dumps.
pub fn no_core_dumps() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "cannot turn off core dumps, which would contain secrets");
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
