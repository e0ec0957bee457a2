//! What people read of the commands, as it was: the help of each, and its refusals of words, and of rows of a spreadsheet, that are not
//! its own. A changed line is a decision, and stands in the change that makes it.

use clap::{Command, CommandFactory};
use farebox_cli::Args;

use crate::support::process::farebox;

/// This command and those in it, each with the words that call it.
fn walk(command: &Command, before: &[String], found: &mut Vec<(Vec<String>, Command)>) {
    let words = [before, &[command.get_name().to_owned()]].concat();
    found.push((words.clone(), command.clone()));
    for inner in command.get_subcommands() {
        walk(inner, &words, found);
    }
}

fn every_command() -> Vec<(Vec<String>, Command)> {
    let mut command = farebox_cli::commands();
    command.build();
    let mut found = Vec::new();
    walk(&command, &[], &mut found);
    found.retain(|(words, _)| !words.iter().any(|word| word == "help"));
    found
}

/// On a terminal of 80 columns, each is read without turning a page.
#[test]
fn the_help_of_every_command_is_as_it_was() {
    let mut text = String::new();
    for (words, _) in every_command() {
        let words = words.join(" ");
        let typed = words.split(' ').chain(["--help"]);
        let help = (farebox_cli::commands().term_width(80)).try_get_matches_from(typed);
        let help = help.unwrap_err().to_string();
        let lines = help.lines().count();
        assert!(lines <= 40, "{words}: {lines} lines\n{help}");
        let settings = "Process settings: farebox help settings";
        assert!(
            help.contains(settings) && !help.contains("--tls-cert"),
            "{help}"
        );
        text += &format!("## {words}\n{help}\n");
    }
    insta::assert_snapshot!("help", text);
}

#[test]
fn refusals_of_every_command_are_as_they_were() {
    let mut text = String::new();
    for (words, command) in every_command() {
        if command.has_subcommands() {
            continue;
        }
        text += &format!("## {}\n", words.join(" "));
        let mut mistakes = vec![("nothing said".to_owned(), Vec::new())];
        mistakes.push((
            "an unknown option".to_owned(),
            vec!["--nonsense".to_owned()],
        ));
        let many = vec!["§".to_owned(); 9];
        mistakes.push(("nine words".to_owned(), many));
        for option in command
            .get_arguments()
            .filter(|option| !option.is_hide_set())
        {
            let Some(long) = option.get_long() else {
                continue;
            };
            if option.is_global_set() || long == "help" {
                continue;
            }
            for value in ["", "§"] {
                mistakes.push((
                    format!("--{long}={value}"),
                    vec![format!("--{long}={value}")],
                ));
            }
        }
        for (mistake, given) in mistakes {
            let all = words.iter().chain(&given);
            let said = match Args::command().term_width(100).try_get_matches_from(all) {
                Ok(_) => "taken\n".to_owned(),
                Err(error) => error.to_string(),
            };
            text += &format!("{mistake}: {said}");
        }
        text.push('\n');
    }
    insta::assert_snapshot!("mistakes", text);
}

/// Cells that are a slip in some column.
const CELLS: [&str; 15] = [
    "§",
    "",
    "0",
    "-1",
    "1.5",
    "12,5",
    "none",
    "all",
    "99999999999",
    "2027-02-30",
    "2020-01-01",
    "=b",
    "two\nlines",
    "c_7f3q9d2xw",
    "k_7f3q9d2xw1",
];

/// What is said of rows of which only one column is in question, or of their names.
fn said_of_rows(noun: &str, names: &str, rows: &[String]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.csv");
    std::fs::write(&file, format!("{names}\n{}\n", rows.join("\n"))).unwrap();
    let output = farebox(folder.path(), &[noun, "create", "--from", "rows.csv"])
        .output()
        .unwrap();
    format!(
        "## {noun} create --from: {names}\n{}{}\n",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn refusals_of_rows_are_as_they_were() {
    let mut text = String::new();
    let columns = [
        (
            "customers",
            &[
                "label",
                "external-id",
                "rate",
                "concurrency",
                "low-balance",
                "name",
                "address",
                "metadata",
            ][..],
            "label",
        ),
        (
            "keys",
            &[
                "label",
                "customer",
                "balance",
                "reference",
                "models",
                "expires",
                "rate",
                "concurrency",
            ],
            "label,balance,reference",
        ),
    ];
    for (noun, columns, others) in columns {
        for column in columns {
            let others: Vec<&str> = (others.split(','))
                .filter(|other| {
                    other != column
                        && (*other == "label" || *column == "balance" || *column == "reference")
                })
                .collect();
            let given = others.iter().map(|other| match *other {
                "balance" => "5",
                given => given,
            });
            let given: Vec<&str> = given.collect();
            let names = [&others[..], &[column]].concat().join(",");
            let row = |cell: &&str| [&given[..], &[&format!("\"{cell}\"")]].concat().join(",");
            // A last row that nothing takes, so that none is created.
            let mut rows: Vec<String> = CELLS.iter().map(row).collect();
            rows.push("one,cell,too,many,here".to_owned());
            text += &said_of_rows(noun, &names, &rows);
        }
    }
    for (names, row) in [
        ("label,colour", "Ada,red"),
        ("rate", "3"),
        ("label,rate,rate", "Ada,3,4"),
        ("label,balance", "Ada,5"),
        ("label,reference", "Ada,inv-1"),
        ("", ""),
        (
            "label",
            "sk-fb-0000000000-0000000000000000000000000000000000000000000000000000",
        ),
    ] {
        for noun in ["customers", "keys"] {
            text += &said_of_rows(
                noun,
                names,
                &[row.to_owned(), "one,cell,too,many".to_owned()],
            );
        }
    }
    insta::assert_snapshot!("rows", text);
}
