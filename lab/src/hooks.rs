//! The part of `cargo lab peers` about agents' frameworks: the hooks of `examples/hooks` in the real packages, with
//! scripted models.
//!
//! The packages are pinned in `lab/pins/hooks/` and installed under `target/hooks/`: some 200 MB.

use anyhow::Result;

use xtask::{pins, repo::Repo, shell, test::guard};

/// The variable that tells the tests where the packages of npm are; its value is absolute.
const VARIABLE: &str = "TR_HOOKS";
/// The variable that tells the hooks which program to start.
const GUARD: &str = "TOOL_GUARD";

/// Installs the packages that are missing, and runs each hook with its own.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    pins::npm(repo, "hooks", "lab/pins/hooks")?;
    let python = pins::venv(repo, "hooks/venv", "lab/pins/hooks/requirements.txt")?.join("python");
    let (guard, tests) = (guard(repo)?, repo.root.join("examples/hooks/tests"));
    for (program, file) in [
        ("node".into(), "vercel_ai_sdk.mjs"),
        (python.clone(), "langchain_tools.py"),
        (python, "openai_agents.py"),
    ] {
        shell::run(
            repo.command(program)
                .arg(tests.join(file))
                .env(VARIABLE, repo.target.join("hooks"))
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .env(GUARD, &guard),
        )?;
    }
    Ok(())
}
