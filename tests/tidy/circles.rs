//! The rule about cycles: modules of one folder may depend on each other only in one direction.
//!
//! A module includes everything below it; an item that a file takes from its parent counts as taken from where the parent has it. A
//! call of a method leads to the file with that method, also where its type is another file's: otherwise two files could call each
//! other through one type without naming each other.
//!
//! The front of a folder (`stream.rs` of `stream/`) is above its files. They may take its types, and give one more methods in a file
//! of their own: that is how a type with several jobs is kept in files with one job each. Among themselves they are judged.

use std::collections::{BTreeMap, BTreeSet};

use crate::house::House;

type Module = Vec<String>;

/// Each module and the siblings it names.
fn edges(house: &House) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut modules: BTreeSet<&[String]> = BTreeSet::new();
    for facts in house.sources.values() {
        modules.extend((1..=facts.module.len()).map(|length| &facts.module[..length]));
    }
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for facts in house.sources.values() {
        for path in facts
            .names
            .iter()
            .filter_map(|name| house.resolve(facts, name))
        {
            let shared = facts
                .module
                .iter()
                .zip(&path)
                .take_while(|(a, b)| a == b)
                .count();
            if shared > 0
                && shared < facts.module.len()
                && shared < path.len()
                && modules.contains(&path[..=shared])
            {
                edges
                    .entry(facts.module[..=shared].to_vec())
                    .or_default()
                    .insert(path[..=shared].to_vec());
            }
        }
    }
    for (from, to) in calls(house) {
        let shared = (from.iter().zip(&to)).take_while(|(a, b)| a == b).count();
        if shared > 0 && shared < from.len() && shared < to.len() {
            (edges.entry(from[..=shared].to_vec()).or_default()).insert(to[..=shared].to_vec());
        }
    }
    edges
}

/// Files that call a method which another file of their folder gives to a type that is not its own. Methods of the same name cannot
/// be told apart without types, and are left out.
fn calls(house: &House) -> Vec<(Module, Module)> {
    let of_traits: BTreeSet<&String> =
        (house.sources.values().flat_map(|facts| &facts.of_traits)).collect();
    // For each method its file, and the folder of its type if that is another file's.
    let mut homes: BTreeMap<&str, Vec<(&Module, Option<Module>)>> = BTreeMap::new();
    for facts in house.sources.values() {
        for (of, method) in &facts.methods {
            let lent = house
                .resolve(facts, of)
                .filter(|home| !home.starts_with(&facts.module));
            let folder = lent.map(|home| home[..home.len().saturating_sub(2)].to_vec());
            homes
                .entry(method)
                .or_default()
                .push((&facts.module, folder));
        }
    }
    let mut found = Vec::new();
    for facts in house.sources.values() {
        for call in facts.calls.iter().filter(|call| !of_traits.contains(call)) {
            if let Some([(home, Some(folder))]) = homes.get(call.as_str()).map(Vec::as_slice)
                && facts.module.starts_with(folder)
            {
                found.push((facts.module.clone(), (*home).clone()));
            }
        }
    }
    found
}

/// Every module that one leads to.
fn reached(edges: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(at) = next.pop() {
        for further in edges.get(at).into_iter().flatten() {
            if seen.insert(further.clone()) {
                next.push(further);
            }
        }
    }
    seen
}

/// Modules of one folder name each other in one direction.
pub(crate) fn circles(house: &House) -> Vec<String> {
    let edges = edges(house);
    let reach: BTreeMap<&Module, BTreeSet<Module>> = edges
        .keys()
        .map(|module| (module, reached(&edges, module)))
        .collect();
    let mut found: BTreeSet<(String, Vec<String>)> = BTreeSet::new();
    for (module, reached) in reach
        .iter()
        .filter(|(module, reached)| reached.contains(**module))
    {
        let mates = reached
            .iter()
            .filter(|other| reach.get(other).is_some_and(|back| back.contains(*module)));
        let folder = module[..module.len() - 1].join("::");
        found.insert((
            folder,
            mates.filter_map(|mate| mate.last().cloned()).collect(),
        ));
    }
    found
        .iter()
        .map(|(folder, mates)| {
            format!(
                "{folder}: {} name each other in a circle: give what they share a file",
                mates.join(", ")
            )
        })
        .collect()
}
