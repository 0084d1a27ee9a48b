//! A small protocol for these tests: a server that answers numbers, and a client that asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cara_env::{Batch, Cf, IoStream};
use cara_netsim::Boot;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub const PORT: u16 = 7000;

/// How many asks were answered, and when (world time) the last answer came.
#[derive(Debug, Default)]
pub struct Answers {
    pub count: AtomicU64,
    pub last_ms: AtomicU64,
}

/// Answers every number with the next one, after writing it to disk.
pub async fn serve(boot: Boot) -> Result<(), String> {
    let listener = boot.env.net.listen(&format!("{}:{PORT}", boot.name)).await.map_err(|e| e.to_string())?;
    loop {
        let (stream, _) = listener.accept().await.map_err(|e| e.to_string())?;
        let engine = boot.engine.clone();
        drop(cara_env::spawn(async move {
            let _ended = answer(stream, engine).await;
        }));
    }
}

async fn answer(mut stream: IoStream, engine: Arc<dyn cara_env::Engine>) -> std::io::Result<()> {
    loop {
        let number = stream.read_u64().await?;
        let mut batch = Batch::new();
        batch.put(Cf::Log, number.to_be_bytes(), b"seen".to_vec());
        engine.write(&batch)?;
        engine.sync().await?;
        stream.write_u64(number + 1).await?;
    }
}

/// Asks `server` for ever: one connection while it works, the next after an error or half a second of silence.
pub async fn ask(boot: Boot, server: String, answers: Arc<Answers>) -> Result<(), String> {
    let env = boot.env;
    loop {
        let work = async {
            let mut stream = env.net.connect(&format!("{server}:{PORT}")).await?;
            loop {
                let number = env.rng.below(1_000_000);
                stream.write_u64(number).await?;
                let answer = cara_env::timeout(&*env.clock, Duration::from_millis(500), stream.read_u64()).await;
                let answer = answer.map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))??;
                assert_eq!(answer, number + 1);
                answers.count.fetch_add(1, Ordering::Relaxed);
                answers.last_ms.store(env.clock.monotonic().as_millis() as u64, Ordering::Relaxed);
                env.clock.sleep(Duration::from_millis(env.rng.below(20))).await;
            }
            #[allow(unreachable_code)] // Gives the block its type.
            Ok::<(), std::io::Error>(())
        };
        let _failed = cara_env::timeout(&*env.clock, Duration::from_secs(5), work).await;
        env.clock.sleep(Duration::from_millis(50)).await;
    }
}
