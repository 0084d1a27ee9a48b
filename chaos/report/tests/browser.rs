//! Draws the page in a real browser and looks at the result: no script error, the first finding in sight, a picture.
//!
//! `deploy/setup/chromium.sh` installs the browser. Without one these tests say SKIPPED; with CARA_REQUIRE_CHROMIUM=1 they
//! fail. CARA_REPORT_SCREENSHOTS=<folder> keeps pages and pictures there.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cara_report::{Recording, html};

/// The same names, in the same order, as deploy/setup/chromium.sh.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const WINDOW: (u32, u32) = (1600, 1000);
/// So much of the page's own time may pass before the browser looks: it draws within one frame.
const PAGE_TIME_MS: u32 = 3_000;
/// A blank page has one colour, a page of text without a drawing about a hundred.
const COLOURS_MIN: usize = 200;
/// An unhappy browser is ended after this, by coreutils' `timeout`.
const BROWSER_DEADLINE: &str = "120";

/// The browser, or a word to the reader why this test looks at nothing.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found =
        BROWSERS.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|f| f.exists());
    if found.is_none() {
        let reason = format!("none of {} is in PATH; install it with: deploy/setup/chromium.sh", BROWSERS.join(", "));
        assert!(std::env::var("CARA_REQUIRE_CHROMIUM").as_deref() != Ok("1"), "CARA_REQUIRE_CHROMIUM=1, but {reason}");
        println!("SKIPPED: {reason}");
    }
    found
}

/// One page in one folder, and what the browser makes of it.
struct Drawn {
    dom: String,
    screenshot: PathBuf,
    _folder: tempfile::TempDir,
}

impl Drawn {
    /// `flags` are the browser's, for instance for a dark page.
    fn draw(browser: &Path, name: &str, recording: &Recording, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("report.html");
        std::fs::write(&page, html(recording)).unwrap();
        let screenshot = folder.path().join("page.png");
        let picture = format!("--screenshot={}", screenshot.display());
        run(browser, folder.path(), &page, &[flags, &[&picture]].concat());
        let dom = run(browser, folder.path(), &page, &[flags, &["--dump-dom"]].concat());
        keep(name, &page, &screenshot);
        Self { dom: String::from_utf8(dom.stdout).unwrap(), screenshot, _folder: folder }
    }

    /// The value of a data attribute of the page's root.
    fn data(&self, name: &str) -> Option<&str> {
        let (root, _) = self.dom.split_once("<head>")?;
        let (_, rest) = root.split_once(&format!("data-{name}=\""))?;
        rest.split('"').next()
    }

    fn has_no_script_errors(&self) {
        let text = self.data("script-error-text");
        assert_eq!(self.data("script-errors"), Some("0"), "the page's script failed: {text:?}");
        assert_eq!(self.data("drawn"), Some("true"), "the page's script didn't get to its end");
    }

    /// How many colours the picture has.
    fn colours(&self) -> usize {
        let file = std::io::BufReader::new(std::fs::File::open(&self.screenshot).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), WINDOW);
        let pixel_bytes = info.line_size / info.width as usize;
        pixels.chunks_exact(pixel_bytes).collect::<BTreeSet<_>>().len()
    }
}

fn run(browser: &Path, folder: &Path, page: &Path, flags: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg(BROWSER_DEADLINE).arg(browser).args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--no-first-run",
        &format!("--user-data-dir={}", folder.join("profile").display()),
        &format!("--window-size={},{}", WINDOW.0, WINDOW.1),
        &format!("--virtual-time-budget={PAGE_TIME_MS}"),
    ]);
    let output = command.args(flags).arg(format!("file://{}", page.display())).output().unwrap();
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// For people who want to look for themselves.
fn keep(name: &str, page: &Path, screenshot: &Path) {
    let Some(folder) = std::env::var_os("CARA_REPORT_SCREENSHOTS").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(page, folder.join(format!("{name}.html"))).unwrap();
    std::fs::copy(screenshot, folder.join(format!("{name}.png"))).unwrap();
}

#[test]
fn chromium_opens_the_page_at_the_first_violation() {
    let Some(browser) = browser() else { return };
    let drawn = Drawn::draw(&browser, "fail", &common::sample(), &[]);
    drawn.has_no_script_errors();
    assert_eq!(drawn.data("first-violation-visible"), Some("true"));
    assert_eq!(drawn.data("first-violation-text"), Some(common::VIOLATION));
    assert!(drawn.dom.contains(&format!("<span class=\"text\">{}</span>", common::VIOLATION)));
    let messages: usize = drawn.data("messages-drawn").unwrap().parse().unwrap();
    assert!(messages > 20, "only {messages} messages around the violation are drawn");
    assert!(drawn.dom.contains("9007199254740993"), "the seed is rounded");
    assert!(drawn.colours() > COLOURS_MIN, "the picture has only {} colours", drawn.colours());
}

#[test]
fn chromium_draws_the_page_in_dark_too() {
    let Some(browser) = browser() else { return };
    let drawn = Drawn::draw(&browser, "dark", &common::sample(), &["--blink-settings=preferredColorScheme=0"]);
    drawn.has_no_script_errors();
    assert_eq!(drawn.data("first-violation-visible"), Some("true"));
    assert!(drawn.colours() > COLOURS_MIN, "the picture has only {} colours", drawn.colours());
}

#[test]
fn chromium_shows_planted_markup_as_text() {
    let Some(browser) = browser() else { return };
    let mut recording = common::sample();
    recording.scenario = common::ATTACK.to_owned();
    recording.findings[0].text = common::ATTACK.to_owned();
    recording.hosts[0].name = common::ATTACK.to_owned();
    recording.calls[0].key = common::ATTACK.to_owned();
    let drawn = Drawn::draw(&browser, "attack", &recording, &[]);
    drawn.has_no_script_errors();
    assert!(!drawn.dom.contains("<img"), "planted markup has become an element");
    assert!(!drawn.dom.contains("<title>taken over"), "planted script has run");
    assert_eq!(drawn.data("first-violation-visible"), Some("true"));
}

#[test]
fn chromium_draws_a_run_without_findings_and_one_without_anything() {
    let Some(browser) = browser() else { return };
    for (name, recording) in [("pass", common::passing()), ("empty", Recording::default())] {
        let drawn = Drawn::draw(&browser, name, &recording, &[]);
        drawn.has_no_script_errors();
        assert_eq!(drawn.data("first-violation-visible"), Some("none"));
        assert!(drawn.dom.contains("No checker found anything wrong"));
    }
}

/// A browser that only dumps the document draws no frames: without this nothing would be drawn again after a key.
const FRAMES: &str = "window.requestAnimationFrame = (draw) => setTimeout(draw, 1);";

/// Presses keys, turns the wheel, drags, clicks and filters; writes down what the page shows after each.
const USE_THE_PAGE: &str = include_str!("common/use_the_page.js");

#[test]
fn chromium_obeys_keys_wheel_mouse_and_filters() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let page_text = html(&common::sample())
        .replacen("<head>", &format!("<head><script>{FRAMES}</script>"), 1)
        .replacen("</body>", &format!("<script>{USE_THE_PAGE}</script></body>"), 1);
    std::fs::write(&page, page_text).unwrap();
    let dom = String::from_utf8(run(&browser, folder.path(), &page, &["--dump-dom"]).stdout).unwrap();
    let drawn = Drawn { dom, screenshot: PathBuf::new(), _folder: folder };
    drawn.has_no_script_errors();
    let told: Vec<&str> = drawn.data("told").expect("the steps didn't get to their end").lines().collect();
    let expected = [
        "open|6 s|21.310 s|1 linearizable|Hosts 11/11|key-3",
        "whole|1 min 0 s|21.310 s|1 linearizable|Hosts 11/11|key-3",
        "next|6 s|24.050 s|2 single_instance|Hosts 11/11|key-3",
        "previous|6 s|21.310 s|1 linearizable|Hosts 11/11|key-3",
        "closer|3.75 s|21.310 s|1 linearizable|Hosts 11/11|key-3",
        "back|6 s|21.310 s|1 linearizable|Hosts 11/11|key-3",
        "wheel|3.71 s|21.310 s|1 linearizable|Hosts 11/11|key-3",
        "click|1 min 0 s|30.000 s|1 linearizable|Hosts 11/11|key-3",
        "step|1 min 0 s|30.500 s|1 linearizable|Hosts 11/11|key-3",
        "key|1 min 0 s|30.500 s|1 linearizable|Hosts 11/11|key-1",
        "hidden|1 min 0 s|30.500 s|1 linearizable|Hosts 10/11|key-1",
        "violation|6 s|21.310 s|1 linearizable|Hosts 11/11|key-3",
        "right|6 s|21.310 s|1 linearizable|Hosts 11/11|key-3",
        "dragged|6 s|21.310 s|1 linearizable|Hosts 11/11|key-3",
        "help true",
    ];
    assert_eq!(told, expected);
    // 15 % to the right by key, 15 % back by the mouse.
    let status = drawn.data("status").unwrap();
    assert!(status.starts_with("17.590 s to 23.590 s"), "{status}");
}
