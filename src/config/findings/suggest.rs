//! The nearest known names to an unknown one, for the hints of findings and for redaction. Pure; contains no names itself.

/// Models that are less alike than this are not suggested. At 0.8 `gpt-5` is suggested for `gpt-5-nano` and `claude-sonnet-4.5`
/// for `claude-sonnet-4-5-20250929`, but nothing for `banana`.
const ALIKE: f64 = 0.8;
/// Longer names of models are not compared with other names.
const LONGEST_MODEL: usize = 200;

/// Up to three names of models that are like this one, the most alike first.
pub(crate) fn nearest_models<'a>(name: &str, models: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if name.len() > LONGEST_MODEL {
        return Vec::new();
    }
    // Names in the style of a provider ("vendor/model") are compared by their last part.
    let wanted = name.rsplit('/').next().unwrap_or(name).trim().to_ascii_lowercase();
    let alike = models.map(|model| (strsim::jaro_winkler(&wanted, model), model)).filter(|(likeness, _)| *likeness >= ALIKE);
    let mut best: Vec<(f64, &str)> = Vec::with_capacity(4);
    for (likeness, model) in alike {
        best.insert(best.partition_point(|(better, _)| *better >= likeness), (likeness, model));
        best.truncate(3);
    }
    best.into_iter().map(|(_, model)| model).collect()
}

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
