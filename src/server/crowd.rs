//! Connections at the same time: in all, and of one address.
//!
//! Anyone in the cluster can reach the port. Nobody alone may hold so many idle connections that an API server finds no
//! room (TRAPS J01, J07).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who is connected.
pub struct Crowd {
    room: Arc<Semaphore>,
    most_of_one: usize,
    connected: Mutex<HashMap<IpAddr, usize>>,
}

/// Room for one connection, given back when dropped.
pub struct Seat {
    crowd: Arc<Crowd>,
    address: IpAddr,
    _room: OwnedSemaphorePermit,
}

impl Crowd {
    /// Room for this many connections, of which one address gets half.
    pub fn new(max: usize) -> Arc<Self> {
        let max = max.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Crowd {
            room: Arc::new(Semaphore::new(max)),
            most_of_one: max.div_ceil(2),
            connected: Mutex::default(),
        })
    }

    /// Waits until there is room for one more.
    ///
    /// # Errors
    /// The semaphore was closed; it never is.
    pub async fn room(&self) -> io::Result<OwnedSemaphorePermit> {
        self.room.clone().acquire_owned().await.map_err(io::Error::other)
    }

    /// Seats a connection from this address; `None` where it has its half already.
    pub fn seat(self: &Arc<Self>, address: IpAddr, room: OwnedSemaphorePermit) -> Option<Seat> {
        let mut connected = self.lock();
        let of_this = connected.entry(address.to_canonical()).or_default();
        if *of_this >= self.most_of_one {
            return None;
        }
        *of_this += 1;
        Some(Seat { crowd: Arc::clone(self), address: address.to_canonical(), _room: room })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // Nothing within the lock can panic.
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Entry::Occupied(mut of_this) = self.crowd.lock().entry(self.address) {
            *of_this.get_mut() -= 1;
            if *of_this.get() == 0 {
                of_this.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn j07_one_address_gets_half_of_the_room_and_gives_it_back() {
        let crowd = Crowd::new(4);
        let (one, same) = (IpAddr::from([10, 0, 0, 1]), "::ffff:10.0.0.1".parse().unwrap());
        let first = crowd.seat(one, crowd.room().await.unwrap());
        let second = crowd.seat(same, crowd.room().await.unwrap());
        assert!(first.is_some() && second.is_some());
        assert!(crowd.seat(one, crowd.room().await.unwrap()).is_none());
        let other = crowd.seat(IpAddr::from([10, 0, 0, 2]), crowd.room().await.unwrap());
        assert!(other.is_some(), "there is room for others");
        drop(first);
        assert!(crowd.seat(one, crowd.room().await.unwrap()).is_some());
        drop((second, other));
        assert!(crowd.lock().is_empty(), "nobody is remembered");
        assert_eq!(crowd.room.available_permits(), 4);
    }

    #[tokio::test]
    async fn a_single_seat_is_for_anybody() {
        let crowd = Crowd::new(1);
        assert!(crowd.seat(IpAddr::from([10, 0, 0, 1]), crowd.room().await.unwrap()).is_some());
    }
}
