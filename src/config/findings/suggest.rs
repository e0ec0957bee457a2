//! The nearest known name to a misspelt one, for the hints of findings and for redaction. Pure; contains no field names itself.

/// The nearest of some names, if it is close enough to be a typing mistake.
pub(crate) fn did_you_mean<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    if name.len() > 60 {
        return None;
    }
    if let Some(same) = names.iter().find(|candidate| **candidate == name) {
        return Some(same);
    }
    let lower = name.to_ascii_lowercase().replace('-', "_");
    let allowed = |candidate: &str| match candidate.len().min(lower.len()) {
        0..=2 => 0,
        3..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    names
        .iter()
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.replace('-', "_")), *candidate))
        .filter(|(distance, candidate)| *distance <= allowed(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
