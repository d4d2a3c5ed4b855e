//! How lines go from one layer to the next: out of their tasks, up or down in a track, into others.

use std::collections::BTreeMap;

use super::flow::Flow;

/// How many tracks stand between two layers, at most; what is more shares them.
const TRACKS: usize = 12;
/// Up to how many lines between two layers it is looked for good tracks, and up to how many for the best.
const MANY: usize = 1_000;
const FEW: usize = 100;

/// Lines between two layers that go together: from each of some tasks to each of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Net {
    /// The rows they come from, from the top.
    pub(super) from: Vec<usize>,
    /// The rows they go to, and whether a task stands there.
    pub(super) to: Vec<(usize, bool)>,
    /// The row that the critical path comes from, and the one it goes to.
    pub(super) heavy: Option<(usize, usize)>,
    /// Whether something they come from is not done yet.
    pub(super) live: bool,
    /// In which track they go up or down; `None` if they go straight on.
    pub(super) track: Option<usize>,
    /// All rows of it, from the top.
    pub(super) rows: Vec<usize>,
}

impl Net {
    /// The highest row and the lowest.
    pub(super) fn span(&self) -> (usize, usize) {
        (self.rows.first().copied().unwrap_or(0), self.rows.last().copied().unwrap_or(0))
    }

    fn meets(&self, other: &Self) -> bool {
        let ((a, b), (c, d)) = (self.span(), other.span());
        a <= d && c <= b
    }

    /// Whether this one must turn before the other: what comes out of a row ends where what goes into it
    /// begins.
    fn turns_before(&self, other: &Self) -> bool {
        self.from.iter().any(|row| other.to.iter().any(|(to, _)| to == row))
    }

    /// Lines that go down nest without crossing if the lowest turns first; those that go up, if the
    /// highest does.
    fn rank(&self) -> (bool, i64) {
        let mean = |sum: usize, count: usize| sum / count.max(1);
        let from = mean(self.from.iter().sum(), self.from.len());
        let to = mean(self.to.iter().map(|(row, _)| row).sum(), self.to.len());
        let row = i64::try_from(from).unwrap_or(i64::MAX);
        if to >= from { (false, -row) } else { (true, row) }
    }

    /// Moves it down.
    pub(super) fn lower(&mut self, by: usize) {
        let rows = self.from.iter_mut().chain(&mut self.rows);
        rows.chain(self.to.iter_mut().map(|(row, _)| row)).for_each(|row| *row += by);
        self.heavy = self.heavy.map(|(from, to)| (from + by, to + by));
    }
}

/// The lines behind each layer.
pub(super) fn nets(flow: &Flow) -> Vec<Vec<Net>> {
    let mut to: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (a, b, _) in &flow.links {
        to.entry(*a).or_default().push(*b);
    }
    // What leads to the same goes together; else many that lead to one would take a track each.
    let mut groups: BTreeMap<(usize, Vec<usize>), Net> = BTreeMap::new();
    let mut home: BTreeMap<usize, (usize, Vec<usize>)> = BTreeMap::new();
    let row = |place: usize| flow.items.get(place).map_or(0, |item| item.row);
    for (from, mut to) in to {
        let Some(item) = flow.items.get(from) else { continue };
        to.sort_unstable();
        let key = (item.layer, to);
        let net = groups.entry(key.clone()).or_default();
        if net.to.is_empty() {
            let is_task = |place: usize| flow.items.get(place).is_some_and(|i| i.task.is_some());
            net.to = key.1.iter().map(|place| (row(*place), is_task(*place))).collect();
            net.to.sort_unstable();
        }
        net.from.push(item.row);
        net.live |= !item.done;
        home.insert(from, key);
    }
    for (a, b, _) in flow.links.iter().filter(|(_, _, heavy)| *heavy) {
        if let Some(net) = home.get(a).and_then(|key| groups.get_mut(key)) {
            net.heavy = Some((row(*a), row(*b)));
        }
    }
    let mut channels = vec![Vec::new(); flow.layers.len()];
    for ((layer, _), mut net) in groups {
        net.from.sort_unstable();
        net.rows = net.from.iter().copied().chain(net.to.iter().map(|(row, _)| *row)).collect();
        net.rows.sort_unstable();
        net.rows.dedup();
        if let Some(channel) = channels.get_mut(layer) {
            channel.push(net);
        }
    }
    channels.iter_mut().for_each(|channel| give_tracks(channel));
    channels
}

/// Gives those that do not go straight on a track each, so that none runs into another.
fn give_tracks(nets: &mut [Net]) {
    nets.sort_by_key(Net::rank);
    let mut waiting: Vec<usize> =
        (0..nets.len()).filter(|n| nets.get(*n).is_some_and(|net| net.rows.len() > 1)).collect();
    if waiting.len() > MANY {
        for (count, number) in waiting.into_iter().enumerate() {
            if let Some(net) = nets.get_mut(number) {
                net.track = Some(count % TRACKS);
            }
        }
        return;
    }
    let mut placed: Vec<usize> = Vec::new();
    while !waiting.is_empty() {
        let is_free = |number: &usize| {
            let net = nets.get(*number);
            net.is_some_and(|net| {
                let others = waiting.iter().filter(|other| *other != number);
                let mut others = others.filter_map(|other| nets.get(*other));
                !others.any(|other| other.turns_before(net))
            })
        };
        // Two that would each have to be first cannot both be right.
        let next = if waiting.len() > FEW { None } else { waiting.iter().position(is_free) };
        let next = next.unwrap_or(0);
        let number = waiting.remove(next);
        let Some(net) = nets.get(number) else { continue };
        let before = placed.iter().filter_map(|other| nets.get(*other));
        let before = before.filter(|other| other.meets(net) || other.turns_before(net));
        let track = before.filter_map(|other| other.track).max().map_or(0, |track| track + 1);
        placed.push(number);
        if let Some(net) = nets.get_mut(number) {
            net.track = Some(track.min(TRACKS - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(from: &[usize], to: &[usize]) -> Net {
        let mut rows = [from, to].concat();
        rows.sort_unstable();
        rows.dedup();
        let to = to.iter().map(|row| (*row, true)).collect();
        Net { from: from.to_vec(), to, rows, ..Net::default() }
    }

    /// Rows a line comes from and goes to, and the track it is given.
    type Line<'l> = (&'l [usize], &'l [usize], Option<usize>);

    fn check(lines: &[Line<'_>]) {
        let mut nets: Vec<Net> = lines.iter().map(|(from, to, _)| net(from, to)).collect();
        give_tracks(&mut nets);
        for (from, to, track) in lines {
            let net = nets.iter().find(|net| net.from == *from).unwrap();
            assert_eq!(net.track, *track, "{from:?} → {to:?} in {nets:?}");
        }
    }

    #[test]
    fn lines_that_meet_have_tracks_of_their_own() {
        check(&[(&[1], &[1], None)]);
        check(&[(&[1], &[1, 4], Some(0))]);
        // Far from each other they share one.
        check(&[(&[1], &[3], Some(0)), (&[7], &[9], Some(0))]);
        // Both go down: the lower turns first, and they do not cross.
        check(&[(&[0], &[2], Some(1)), (&[1], &[3], Some(0))]);
        check(&[(&[2], &[0], Some(0)), (&[3], &[1], Some(1))]);
        // What comes out of row 4 turns before what goes into it.
        check(&[(&[4], &[8], Some(0)), (&[0], &[4], Some(1))]);
        check(&[(&[4], &[0], Some(0)), (&[8], &[4], Some(1))]);
    }

    #[test]
    fn there_are_never_very_many_tracks() {
        for many in [100, 3_000] {
            let mut nets: Vec<Net> = (0..many).map(|n| net(&[n], &[n + 2 * many])).collect();
            give_tracks(&mut nets);
            assert!(nets.iter().all(|net| net.track < Some(TRACKS)));
        }
    }
}
