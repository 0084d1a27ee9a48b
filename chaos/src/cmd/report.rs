//! `cara-chaos report BUNDLE --out F.html`: one page about one run.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use crate::bundle::Bundle;

/// Which run, and where the page goes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The bundle's folder.
    bundle: PathBuf,
    /// The page; `report.html` in the bundle's folder when not given.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Writes the page.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let bundle = Bundle::at(&args.bundle);
    let page = cara_report::html(&bundle.recording()?);
    let out = args.out.clone().unwrap_or_else(|| bundle.folder().join("report.html"));
    std::fs::write(&out, &page).with_context(|| format!("can't write {}", out.display()))?;
    println!("{}: {} KiB, opens in any browser, no network needed", out.display(), page.len() / 1024);
    Ok(ExitCode::SUCCESS)
}
