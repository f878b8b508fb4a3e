//! A pipe the program writes to, read up to the program's exit.

use std::future::Future;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::io::ioctl_fionread;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf, Take};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Reads what a program writes until its exit, or until everyone who could write has closed it.
///
/// **Invariant:** everything that was written before the exit is read, however late it is asked for, and whoever keeps the pipe open
/// afterwards is not waited for: what the pipe holds when the exit is known is all that is read from then on.
pub struct Pipe<R> {
    from: Take<R>,
    /// Nothing once the exit is known.
    exit: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl<R: AsyncRead> Pipe<R> {
    /// Of a program whose exit cancels the token.
    pub fn new(from: R, exit: CancellationToken) -> Self {
        Self { from: from.take(u64::MAX), exit: Some(Box::pin(exit.cancelled_owned())) }
    }
}

impl<R: AsyncRead + AsFd + Unpin> AsyncRead for Pipe<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let pipe = self.get_mut();
        if let Some(exit) = &mut pipe.exit
            && exit.as_mut().poll(cx).is_ready()
        {
            pipe.exit = None;
            pipe.from.set_limit(ioctl_fionread(pipe.from.get_ref())?);
        }
        Pin::new(&mut pipe.from).poll_read(cx, buf)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::Duration;

    use tokio::process::Command;

    use super::*;

    /// Runs a script to its exit before anything of it is read; answers what is read then.
    async fn read_after_exit(script: &str) -> String {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("sh starts");
        let exit = CancellationToken::new();
        let mut pipe = Pipe::new(child.stdout.take().expect("stdout"), exit.clone());
        // Whoever was left behind ends when this is closed.
        let keep = child.stdin.take();
        child.wait().await.expect("it ends");
        exit.cancel();
        let mut text = String::new();
        let reading = tokio::time::timeout(Duration::from_secs(30), pipe.read_to_string(&mut text));
        reading.await.expect("nobody is waited for").expect("it is text");
        drop(keep);
        text
    }

    #[tokio::test]
    async fn what_was_written_before_the_exit_is_read_and_nobody_is_waited_for() {
        let many = "yes | head -n 30000; echo end";
        let all = format!("{}end\n", "y\n".repeat(30_000));
        assert_eq!(read_after_exit(many).await, all);
        // A background job has no input unless it is given one.
        assert_eq!(read_after_exit(&format!("exec 3<&0; cat <&3 & {many}")).await, all);
        // One that never stops writing ends when nobody reads.
        assert!(read_after_exit("echo first; while echo on; do :; done &").await.starts_with("first\n"));
        assert_eq!(read_after_exit("").await, "");
    }
}
