//! The nearest known names to an unknown one, for the hints of findings and for redaction. Pure; contains no names itself.

/// Longer names of models are not compared with other names.
const LONGEST_MODEL: usize = 200;

/// Up to three names of models, the most alike first, and however little alike: a refusal always names published models.
pub fn nearest_models<'a>(name: &str, models: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if name.len() > LONGEST_MODEL {
        return Vec::new();
    }
    // Names in the style of a provider ("vendor/model") are compared by their last part.
    let wanted = name
        .rsplit('/')
        .next()
        .unwrap_or(name)
        .trim()
        .to_ascii_lowercase();
    let mut best: Vec<(f64, &str)> = Vec::with_capacity(4);
    for model in models {
        let likeness = strsim::jaro_winkler(&wanted, model);
        best.insert(
            best.partition_point(|(better, _)| *better >= likeness),
            (likeness, model),
        );
        best.truncate(3);
    }
    best.into_iter().map(|(_, model)| model).collect()
}

/// The nearest of some names, if it is close enough to be a typing mistake.
pub fn did_you_mean<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
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
        .map(|candidate| {
            (
                strsim::osa_distance(&lower, &candidate.replace('-', "_")),
                *candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= allowed(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
