//! Computes which entries are visible, and from which line on.

use std::collections::VecDeque;

use ratatui::text::Line;

use super::thread::{Entry, Thread};

/// A rendered entry.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) entry: Entry,
    /// The date line above it.
    pub(super) day: Option<Line<'static>>,
    pub(super) lines: Vec<Line<'static>>,
}

/// The visible part of the mail.
#[derive(Debug)]
pub(super) struct Window {
    /// The entries that are at least partly visible.
    pub(super) blocks: VecDeque<Block>,
    /// How many lines of the first entry are cut off at the top.
    pub(super) skip: usize,
    /// How many lines of the selected entry do not fit on the screen.
    pub(super) hidden: usize,
}

impl Block {
    fn len(&self) -> usize {
        self.lines.len() + usize::from(self.day.is_some())
    }
}

impl Window {
    /// The visible part for `height` lines: the selected entry in the middle, unless one end is near.
    pub(super) fn around(
        thread: &Thread<'_>,
        chosen: Entry,
        height: u16,
        scrolled: usize,
        block: impl Fn(Entry) -> Block,
    ) -> Self {
        let height = usize::from(height);
        let own = block(chosen);
        let its = own.len();
        let mut blocks = VecDeque::from([own]);
        if let Some(hidden) = its.checked_sub(height).filter(|hidden| *hidden > 0) {
            return Self { blocks, skip: scrolled.min(hidden), hidden };
        }
        let middle = (height - its) / 2;
        let (mut first, mut last) = (chosen.from, chosen.to);
        let (mut above, mut below) = (0, its);
        let mut go_up = |blocks: &mut VecDeque<Block>, above: &mut usize| {
            let Some(block) = thread.before(first).map(&block) else { return false };
            (first, *above) = (block.entry.from, *above + block.len());
            blocks.push_front(block);
            true
        };
        while above < middle && go_up(&mut blocks, &mut above) {}
        while above.min(middle) + below < height {
            let Some(block) = thread.after(last).map(&block) else { break };
            (last, below) = (block.entry.to, below + block.len());
            blocks.push_back(block);
        }
        // If the end is reached, fill the rest from above.
        while above + below < height && go_up(&mut blocks, &mut above) {}
        let skip = above.saturating_sub(middle).min((above + below).saturating_sub(height));
        let mut window = Self { blocks, skip, hidden: 0 };
        window.leave_out(height);
        window
    }

    /// Drops entries that are not visible.
    fn leave_out(&mut self, height: usize) {
        while let Some(first) = self.blocks.front().map(Block::len)
            && first <= self.skip
        {
            self.skip -= first;
            self.blocks.pop_front();
        }
        let mut rows = 0;
        let is_seen = |block: &&Block| {
            let before = rows;
            rows += block.len();
            before < self.skip + height
        };
        let seen = self.blocks.iter().take_while(is_seen).count();
        self.blocks.truncate(seen);
    }

    /// The number of messages after the visible part.
    pub(super) fn newer(&self, thread: &Thread<'_>) -> usize {
        self.blocks.back().map_or(0, |block| thread.count_after(block.entry.to))
    }
}
