//! The guides name every option and every value that the command line takes.
use crate::Cli;
use clap::{Arg, Command, CommandFactory as _};

/// Each command with the guide that describes its options.
const GUIDES: [(&str, &str); 6] = [
    ("config", include_str!("../../../docs/configuration.md")),
    ("decide", include_str!("../../../docs/decide.md")),
    (
        "mcp",
        concat!(
            include_str!("../../../docs/mcp.md"),
            include_str!("../../../docs/mcp-reference.md"),
            include_str!("../../../docs/mcp-http.md")
        ),
    ),
    ("records", include_str!("../../../docs/records.md")),
    ("turn", include_str!("../../../docs/turn.md")),
    ("session", include_str!("../../../docs/session.md")),
];

/// What users write: the names of options, and their possible values.
fn words(arg: &Arg) -> impl Iterator<Item = String> {
    let values = arg.get_possible_values();
    let values = values.into_iter().map(|value| value.get_name().to_owned());
    // Flags take `true` and `false`, which users do not write.
    let values = values.filter(|value| !["true", "false"].contains(&value.as_str()));
    arg.get_long().map(|long| format!("--{long}")).into_iter().chain(values)
}

/// A command, and all below it.
fn each(command: &Command, see: &mut impl FnMut(&Command)) {
    see(command);
    command.get_subcommands().for_each(|inner| each(inner, see));
}

#[test]
fn every_option_is_in_its_guide() {
    let cli = Cli::command();
    for (name, guide) in GUIDES {
        let command = cli.find_subcommand(name).expect(name);
        let mut missing = Vec::new();
        each(command, &mut |command| {
            let words = command.get_arguments().flat_map(words);
            missing.extend(words.filter(|word| !guide.contains(word.as_str())));
        });
        assert!(missing.is_empty(), "docs/{name}.md says nothing of {missing:?}");
    }
}

#[test]
fn every_default_is_in_its_guide() {
    let cli = Cli::command();
    for (name, guide) in GUIDES {
        each(cli.find_subcommand(name).expect(name), &mut |command| {
            for arg in command.get_arguments().filter(|arg| arg.get_long().is_some()) {
                let option = format!("| `--{}", arg.get_long().unwrap_or_default());
                let row = guide.lines().find(|line| line.starts_with(&option));
                for default in arg.get_default_values().iter().filter_map(|it| it.to_str()) {
                    let is_told =
                        default == "false" || row.is_some_and(|row| row.contains(default));
                    assert!(
                        is_told,
                        "docs/{name}.md does not say that {} is {default}",
                        arg.get_id()
                    );
                }
            }
        });
    }
}
