//! What people read of the commands, as it was: the help of each, and its refusals of words that are not its own. A changed line is a
//! decision, and stands in the change that makes it.

use clap::{Command, CommandFactory};
use farebox_cli::Args;

/// Every command without commands of its own, with the words that call it.
fn leaves(command: Command, before: &[String], found: &mut Vec<(Vec<String>, Command)>) {
    let words = [before, &[command.get_name().to_owned()]].concat();
    if !command.has_subcommands() {
        return found.push((words, command));
    }
    for inner in command.get_subcommands() {
        leaves(inner.clone(), &words, found);
    }
}

/// The settings of the process are the same in each.
fn without_settings(command: Command) -> Command {
    let hidden = |arg: clap::Arg| {
        let of_process = arg.is_global_set();
        arg.hide(of_process)
    };
    command.mut_args(hidden).mut_subcommands(without_settings)
}

fn every_command() -> Vec<(Vec<String>, Command)> {
    let mut command = Args::command().term_width(100);
    command.build();
    let mut command = command.mut_subcommands(without_settings);
    command.build();
    let mut found = Vec::new();
    leaves(command, &[], &mut found);
    found.retain(|(words, _)| !words.iter().any(|word| word == "help"));
    found
}

#[test]
fn the_help_of_every_command_is_as_it_was() {
    let mut text = String::new();
    for (words, mut command) in every_command() {
        text += &format!("## {}\n{}\n", words.join(" "), command.render_long_help());
    }
    insta::assert_snapshot!("help", text);
}

#[test]
fn refusals_of_every_command_are_as_they_were() {
    let mut text = String::new();
    for (words, command) in every_command() {
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
