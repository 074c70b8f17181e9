//! One proxied connection: both directions, with the current faults.

use super::{
    frames::{Frames, Piece},
    loss::{Armed, Losses, Then},
};
use crate::BoxError;
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::watch,
    time::sleep,
};
use tr_core::internal::lock;

/// The lasting faults.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lasting {
    pub(super) requests_cut: bool,
    pub(super) replies_cut: bool,
    pub(super) delay: Duration,
    /// The number of resets.
    pub(super) resets: u64,
    /// The number of heals: connections that lost bytes are reset then.
    pub(super) heals: u64,
}

/// Carries the bytes of one connection.
#[derive(Debug)]
pub(super) struct Carrier {
    lasting: watch::Receiver<Lasting>,
    losses: Arc<Losses>,
    /// The number of resets before this connection.
    resets: u64,
    /// The commands without a reply yet; `None` if a name is not known.
    asked: Mutex<VecDeque<Option<String>>>,
}

/// An error resets the connection.
type Carried = Result<(), BoxError>;

impl Carrier {
    pub(super) fn new(lasting: watch::Receiver<Lasting>, losses: Arc<Losses>) -> Self {
        let resets = lasting.borrow().resets;
        Self { lasting, losses, resets, asked: Mutex::default() }
    }

    /// Runs until both ends have closed it, or it is reset.
    pub(super) async fn carry(self, mut client: TcpStream, server: SocketAddr) {
        let mut lasting = self.lasting.clone();
        let reset = lasting.wait_for(|lasting| lasting.resets != self.resets);
        let Ok(mut server) = TcpStream::connect(server).await else {
            return drop(client.set_zero_linger());
        };
        // Sends small pieces at once; if that cannot be set, they are delayed.
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
        let both = async {
            tokio::try_join!(
                self.requests(from_client, to_server),
                self.replies(from_server, to_client)
            )
        };
        let is_closed = tokio::select! {
            ended = both => ended.is_ok(),
            _ = reset => false,
        };
        if !is_closed {
            // Drops unsent data, and resets the other end.
            let _ = (client.set_zero_linger(), server.set_zero_linger());
        }
    }

    async fn requests(&self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Carried {
        let (mut lasting, mut frames, mut chunk) =
            (self.lasting.clone(), Frames::new(), [0; 16 * 1024]);
        loop {
            let count = from.read(&mut chunk).await?;
            for piece in frames.add(&chunk[..count]).iter().filter(|piece| piece.counts()) {
                lock(&self.asked).push_back(piece.command().map(str::to_owned));
            }
            let delay = lasting.wait_for(|lasting| !lasting.requests_cut).await?.delay;
            if count == 0 {
                return Ok(to.shutdown().await?);
            }
            if !delay.is_zero() {
                sleep(delay).await;
            }
            to.write_all(&chunk[..count]).await?;
        }
    }

    async fn replies(&self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Carried {
        let (mut lasting, mut frames, mut chunk) =
            (self.lasting.clone(), Frames::new(), [0; 16 * 1024]);
        loop {
            let count = from.read(&mut chunk).await?;
            let pieces = frames.add(&chunk[..count]);
            lasting.wait_for(|lasting| !lasting.replies_cut).await?;
            for piece in &pieces {
                match self.loss(piece) {
                    None => to.write_all(&piece.bytes).await?,
                    Some(loss) => return self.lose(loss, piece, &mut from, &mut to).await,
                }
            }
            if count == 0 {
                to.write_all(&frames.rest()).await?;
                return Ok(to.shutdown().await?);
            }
        }
    }

    /// The loss for this piece, if there is one.
    fn loss(&self, piece: &Piece) -> Option<Armed> {
        if !piece.is_reply {
            return None;
        }
        let command = if piece.counts() { lock(&self.asked).pop_front().flatten() } else { None };
        self.losses.take(command.as_deref())
    }

    /// Drops the rest of a piece and, until the connection is reset, everything after it.
    async fn lose(
        &self,
        Armed { kept, then, fired, .. }: Armed,
        piece: &Piece,
        from: &mut ReadHalf<'_>,
        to: &mut WriteHalf<'_>,
    ) -> Carried {
        to.write_all(&piece.bytes[..kept.min(piece.bytes.len())]).await?;
        let mut lasting = self.lasting.clone();
        let heals = lasting.borrow().heals;
        // The test may have dropped the receiver.
        let _ = fired.send(());
        if then == Then::Silence {
            let (mut sink, mut is_open) = ([0; 16 * 1024], true);
            loop {
                tokio::select! {
                    healed = lasting.wait_for(|lasting| lasting.heals != heals) => {
                        healed?;
                        break;
                    }
                    count = from.read(&mut sink), if is_open => is_open = count? > 0,
                }
            }
        }
        Err("a part of a reply is lost".into())
    }
}
