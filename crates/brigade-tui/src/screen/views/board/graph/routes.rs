//! Routes lines between adjacent layers: each line leaves a task, runs vertically along a track, and enters
//! the next task.

use std::collections::BTreeMap;

use super::rows::RowLayout;

/// Maximum number of tracks between two layers. Further lines share these tracks.
const MAX_TRACKS: usize = 12;
/// Limits on the computing time. With more than `MAX_ROUTED` nets between two layers, nets may overlap. With
/// more than `MAX_ORDERED` nets, the order of their tracks is not optimized.
const MAX_ROUTED: usize = 1_000;
const MAX_ORDERED: usize = 100;

/// Lines that run between two layers and share a track. They connect each source row with each target row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Net {
    /// The source rows, top to bottom.
    pub(super) from: Vec<usize>,
    /// The target rows, and whether each is the row of a task.
    pub(super) to: Vec<(usize, bool)>,
    /// Source and target row of the line on the critical path.
    pub(super) heavy: Option<(usize, usize)>,
    /// Whether at least one source task is unfinished.
    pub(super) live: bool,
    /// The vertical track that the lines share; `None` if the net is one straight line.
    pub(super) track: Option<usize>,
    /// All source and target rows, in ascending order.
    pub(super) rows: Vec<usize>,
}

impl Net {
    /// Returns the first and last row of the net.
    pub(super) fn span(&self) -> (usize, usize) {
        (self.rows.first().copied().unwrap_or(0), self.rows.last().copied().unwrap_or(0))
    }

    fn overlaps(&self, other: &Self) -> bool {
        let ((a, b), (c, d)) = (self.span(), other.span());
        a <= d && c <= b
    }

    /// Returns whether this net must turn to the left of the other net, because this net leaves a row that
    /// the other net enters. Otherwise, their horizontal parts would overlap.
    fn turns_before(&self, other: &Self) -> bool {
        self.from.iter().any(|row| other.to.iter().any(|(to, _)| to == row))
    }

    /// Returns a sort key that avoids crossings. Downward lines turn in order from the lowest to the highest,
    /// upward lines from the highest to the lowest.
    fn rank(&self) -> (bool, i64) {
        let mean = |sum: usize, count: usize| sum / count.max(1);
        let from = mean(self.from.iter().sum(), self.from.len());
        let to = mean(self.to.iter().map(|(row, _)| row).sum(), self.to.len());
        let row = i64::try_from(from).unwrap_or(i64::MAX);
        if to >= from { (false, -row) } else { (true, row) }
    }

    /// Moves the net down by `by` rows.
    pub(super) fn shift_down(&mut self, by: usize) {
        let rows = self.from.iter_mut().chain(&mut self.rows);
        rows.chain(self.to.iter_mut().map(|(row, _)| row)).for_each(|row| *row += by);
        self.heavy = self.heavy.map(|(from, to)| (from + by, to + by));
    }
}

/// Returns the nets between each layer and the next.
pub(super) fn nets(layout: &RowLayout) -> Vec<Vec<Net>> {
    let mut to: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (a, b, _) in &layout.links {
        to.entry(*a).or_default().push(*b);
    }
    // Lines with the same targets share one net. Otherwise, each of many lines into one task would need its
    // own track.
    let mut groups: BTreeMap<(usize, Vec<usize>), Net> = BTreeMap::new();
    let mut net_of: BTreeMap<usize, (usize, Vec<usize>)> = BTreeMap::new();
    let row = |index: usize| layout.items.get(index).map_or(0, |item| item.row);
    for (from, mut to) in to {
        let Some(item) = layout.items.get(from) else { continue };
        to.sort_unstable();
        let key = (item.layer, to);
        let net = groups.entry(key.clone()).or_default();
        if net.to.is_empty() {
            let is_task = |index: usize| layout.items.get(index).is_some_and(|i| i.task.is_some());
            net.to = key.1.iter().map(|index| (row(*index), is_task(*index))).collect();
            net.to.sort_unstable();
        }
        net.from.push(item.row);
        net.live |= !item.done;
        net_of.insert(from, key);
    }
    for (a, b, _) in layout.links.iter().filter(|(_, _, heavy)| *heavy) {
        if let Some(net) = net_of.get(a).and_then(|key| groups.get_mut(key)) {
            net.heavy = Some((row(*a), row(*b)));
        }
    }
    let mut channels = vec![Vec::new(); layout.layers.len()];
    for ((layer, _), mut net) in groups {
        net.from.sort_unstable();
        net.rows = net.from.iter().copied().chain(net.to.iter().map(|(row, _)| *row)).collect();
        net.rows.sort_unstable();
        net.rows.dedup();
        if let Some(channel) = channels.get_mut(layer) {
            channel.push(net);
        }
    }
    channels.iter_mut().for_each(|channel| assign_tracks(channel));
    channels
}

/// Assigns a track to each net that is not straight, so that no two nets overlap.
fn assign_tracks(nets: &mut [Net]) {
    nets.sort_by_key(Net::rank);
    let mut waiting: Vec<usize> =
        (0..nets.len()).filter(|n| nets.get(*n).is_some_and(|net| net.rows.len() > 1)).collect();
    if waiting.len() > MAX_ROUTED {
        for (count, number) in waiting.into_iter().enumerate() {
            if let Some(net) = nets.get_mut(number) {
                net.track = Some(count % MAX_TRACKS);
            }
        }
        return;
    }
    let mut assigned: Vec<usize> = Vec::new();
    while !waiting.is_empty() {
        let is_free = |number: &usize| {
            let net = nets.get(*number);
            net.is_some_and(|net| {
                let others = waiting.iter().filter(|other| *other != number);
                let mut others = others.filter_map(|other| nets.get(*other));
                !others.any(|other| other.turns_before(net))
            })
        };
        // If every remaining net has to come after another one (a circular constraint), take the first net.
        let next =
            if waiting.len() > MAX_ORDERED { None } else { waiting.iter().position(is_free) };
        let next = next.unwrap_or(0);
        let number = waiting.remove(next);
        let Some(net) = nets.get(number) else { continue };
        let before = assigned.iter().filter_map(|other| nets.get(*other));
        let before = before.filter(|other| other.overlaps(net) || other.turns_before(net));
        let track = before.filter_map(|other| other.track).max().map_or(0, |track| track + 1);
        assigned.push(number);
        if let Some(net) = nets.get_mut(number) {
            net.track = Some(track.min(MAX_TRACKS - 1));
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

    /// Source rows, target rows and the track that the test expects.
    type ExpectedTrack<'l> = (&'l [usize], &'l [usize], Option<usize>);

    fn check(lines: &[ExpectedTrack<'_>]) {
        let mut nets: Vec<Net> = lines.iter().map(|(from, to, _)| net(from, to)).collect();
        assign_tracks(&mut nets);
        for (from, to, track) in lines {
            let net = nets.iter().find(|net| net.from == *from).unwrap();
            assert_eq!(net.track, *track, "{from:?} → {to:?} in {nets:?}");
        }
    }

    #[test]
    fn overlapping_lines_get_separate_tracks() {
        check(&[(&[1], &[1], None)]);
        check(&[(&[1], &[1, 4], Some(0))]);
        // Two nets that are far apart share a track.
        check(&[(&[1], &[3], Some(0)), (&[7], &[9], Some(0))]);
        // Both nets go down: the lower one turns first, so that they do not cross.
        check(&[(&[0], &[2], Some(1)), (&[1], &[3], Some(0))]);
        check(&[(&[2], &[0], Some(0)), (&[3], &[1], Some(1))]);
        // The line that leaves row 4 turns before the line that enters row 4.
        check(&[(&[4], &[8], Some(0)), (&[0], &[4], Some(1))]);
        check(&[(&[4], &[0], Some(0)), (&[8], &[4], Some(1))]);
    }

    #[test]
    fn the_number_of_tracks_is_limited() {
        for many in [100, 3_000] {
            let mut nets: Vec<Net> = (0..many).map(|n| net(&[n], &[n + 2 * many])).collect();
            assign_tracks(&mut nets);
            assert!(nets.iter().all(|net| net.track < Some(MAX_TRACKS)));
        }
    }
}
