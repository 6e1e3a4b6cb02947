//! The order in which a run sees its data.

use crate::{NnError, Random};
use serde::{Deserialize, Serialize};

/// Batches of places in a data set: every place once per epoch, in an order drawn anew for each; what does not fill the last batch is
/// left out. Its serialized form is small: the order follows from the generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Place", into = "Place")]
pub struct Sampler {
    place: Place,
    next: Random,
    order: Vec<usize>,
}

/// What a sampler is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    count: usize,
    batch: usize,
    epoch: u64,
    position: usize,
    /// The generator before it drew this epoch's order.
    random: Random,
}

impl Sampler {
    /// Batches of `batch` places below `count`.
    ///
    /// # Errors
    /// [`NnError::Setting`] where the set does not fill one batch.
    pub fn new(count: usize, batch: usize, seed: u64) -> Result<Self, NnError> {
        Self::try_from(Place { count, batch, epoch: 0, position: 0, random: Random::new(seed) })
    }

    /// The places of the next batch.
    pub fn next_batch(&mut self) -> Vec<usize> {
        if self.place.position + self.place.batch > self.place.count {
            self.place.random = self.next.clone();
            self.place.epoch += 1;
            self.place.position = 0;
            self.order = self.next.permutation(self.place.count);
        }
        let start = self.place.position;
        self.place.position += self.place.batch;
        self.order[start..self.place.position].to_vec()
    }

    /// The epoch of the last batch, from 0.
    pub fn epoch(&self) -> u64 {
        self.place.epoch
    }
}

impl TryFrom<Place> for Sampler {
    type Error = NnError;

    fn try_from(place: Place) -> Result<Self, NnError> {
        if place.batch == 0 || place.batch > place.count || place.position > place.count {
            let got = format!("{} of {}", place.batch, place.count);
            return Err(NnError::Setting {
                what: "batch",
                got,
                rule: "a batch has at least one element and at most the whole set",
            });
        }
        let mut next = place.random.clone();
        let order = next.permutation(place.count);
        Ok(Self { place, next, order })
    }
}

impl From<Sampler> for Place {
    fn from(sampler: Sampler) -> Self {
        sampler.place
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_epoch_has_every_place_once_and_a_copy_from_text_goes_on_alike() {
        let mut sampler = Sampler::new(10, 3, 1).unwrap();
        let mut first: Vec<usize> = (0..3).flat_map(|_| sampler.next_batch()).collect();
        let order = first.clone();
        first.sort_unstable();
        first.dedup();
        assert_eq!((first.len(), sampler.epoch()), (9, 0));
        for _ in 0..5 {
            let text = serde_json::to_string(&sampler).unwrap();
            let mut copy: Sampler = serde_json::from_str(&text).unwrap();
            for _ in 0..4 {
                assert_eq!(copy.next_batch(), sampler.next_batch());
            }
        }
        let mut again = Sampler::new(10, 3, 1).unwrap();
        assert_eq!(again.next_batch(), order[..3]);
        assert!(Sampler::new(2, 3, 1).is_err() && Sampler::new(2, 0, 1).is_err());
    }
}
