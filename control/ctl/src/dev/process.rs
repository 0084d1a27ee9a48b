//! One child process: its command line, its log file, its life.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};

/// Lines of a log that are shown when its process died.
const LINES_SHOWN: usize = 12;
/// Bytes from the end of a log that are looked at for these lines.
const TAIL_BYTES: u64 = 16 << 10;

/// Where the programs are.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// `cara-server`.
    pub server: PathBuf,
    /// `cara-agent`.
    pub agent: PathBuf,
}

impl Binaries {
    /// Beside the running program (for a test binary: one folder up).
    ///
    /// # Errors
    /// One sentence that names what is missing and how to build it.
    pub fn beside_this_program() -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|e| format!("can't find out where this program is: {e}"))?;
        let folder = own.parent().unwrap_or(Path::new("."));
        let above = folder.parent().unwrap_or(folder);
        [folder, above].iter().find_map(|f| Self::in_folder(f)).ok_or_else(|| {
            let folder = folder.display();
            let release = if cfg!(debug_assertions) { "" } else { " --release" };
            format!(
                "cara-server and cara-agent are not in {folder}; build them with: cargo build{release} -p cara-control -p \
                 cara-agent"
            )
        })
    }

    /// In a folder, if both are there.
    pub fn in_folder(folder: &Path) -> Option<Self> {
        let found = Self { server: folder.join("cara-server"), agent: folder.join("cara-agent") };
        (found.server.is_file() && found.agent.is_file()).then_some(found)
    }
}

/// A program that runs in the background and writes into a log file. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    pub name: String,
    pub log: PathBuf,
    program: PathBuf,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Process {
    pub fn new(name: &str, folder: &Path, program: &Path, arguments: Vec<String>) -> Self {
        let log = folder.join(format!("{name}.log"));
        Self { name: name.to_owned(), log, program: program.to_owned(), arguments, child: None }
    }

    /// Starts it, in a process group of its own: Ctrl-C in the terminal reaches us, and we decide when it ends.
    pub fn start(&mut self) -> io::Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let child = command(&self.program, &self.arguments)
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        self.child = Some(child);
        Ok(())
    }

    /// The process's id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// SIGKILL; returns once it is gone.
    pub async fn kill(&mut self) -> io::Result<()> {
        match self.child.take() {
            Some(mut child) => child.kill().await,
            None => Ok(()),
        }
    }

    /// Its status, when it ended although nobody killed it.
    pub fn died(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().and_then(|child| child.try_wait().ok().flatten())
    }

    pub fn last_lines(&self) -> String {
        last_lines(&self.log)
    }
}

/// Runs a program to its end; its stdout, or what it said.
pub(super) async fn run(program: &Path, arguments: &[String]) -> Result<String, String> {
    let output = command(program, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).output();
    let output = output.await.map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let said = [text(&output.stderr), text(&output.stdout)].join("\n");
    let lines: Vec<&str> = said.lines().collect();
    Err(format!("{}\n{}", output.status, lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")).trim().to_owned())
}

/// Without the variables that are meant for `caractrl` itself.
fn command(program: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    for name in ["CARA_SERVERS", "CARA_TOKEN", "CARA_TOKEN_FILE", "CARA_CA_FINGERPRINT", "CARA_CONTEXT"] {
        command.env_remove(name);
    }
    command
}

fn last_lines(log: &Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = match read() {
        Ok(bytes) => bytes,
        Err(error) => return format!("({} can't be read: {error})", log.display()),
    };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_that_dies_is_noticed_and_its_last_words_are_kept() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let script = "for i in $(seq 1 50); do echo line $i; done; echo last words >&2; exit 3";
        let mut process = Process::new("p", folder.path(), Path::new("/bin/sh"), vec!["-c".into(), script.into()]);
        process.start().expect("sh starts");
        let status = process.child.as_mut().expect("started").wait().await.expect("ends");
        assert_eq!(status.code(), Some(3));
        assert!(process.died().is_some());
        let lines = process.last_lines();
        assert!(lines.ends_with("line 50\nlast words") && lines.lines().count() == LINES_SHOWN, "{lines}");
    }

    #[tokio::test]
    async fn a_killed_process_did_not_die_by_itself() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut process = Process::new("p", folder.path(), Path::new("/bin/sleep"), vec!["60".into()]);
        process.start().expect("sleep starts");
        assert!(process.died().is_none());
        process.kill().await.expect("killed");
        assert!(process.died().is_none());
    }

    #[tokio::test]
    async fn a_program_that_fails_says_why() {
        let arguments = ["-c".to_owned(), "echo no space >&2; exit 4".to_owned()];
        let said = run(Path::new("/bin/sh"), &arguments).await.expect_err("fails");
        assert!(said.contains("exit status: 4") && said.contains("no space"), "{said}");
        assert!(run(Path::new("/nowhere"), &[]).await.is_err());
    }
}
