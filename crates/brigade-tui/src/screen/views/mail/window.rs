//! Computes which mail entries are visible, and how many lines of the first visible entry are cut off.

use std::collections::VecDeque;

use ratatui::text::Line;

use super::entries::{MailEntry, MessageList};

/// A mail entry, rendered as lines.
#[derive(Debug)]
pub(super) struct EntryBlock {
    pub(super) entry: MailEntry,
    /// The date line above the entry.
    pub(super) day: Option<Line<'static>>,
    pub(super) lines: Vec<Line<'static>>,
}

/// The visible part of the mail view.
#[derive(Debug)]
pub(super) struct MailWindow {
    /// The entries that are at least partly visible.
    pub(super) blocks: VecDeque<EntryBlock>,
    /// How many lines of the first entry are cut off at the top.
    pub(super) skip: usize,
    /// How many lines of the selected entry do not fit on the screen.
    pub(super) hidden: usize,
}

impl EntryBlock {
    fn len(&self) -> usize {
        self.lines.len() + usize::from(self.day.is_some())
    }
}

impl MailWindow {
    /// Computes which entries are visible in `height` lines. The selected entry is in the middle, except near
    /// the first or last message.
    pub(super) fn around(
        list: &MessageList<'_>,
        selected: MailEntry,
        height: u16,
        scrolled: usize,
        block: impl Fn(MailEntry) -> EntryBlock,
    ) -> Self {
        let height = usize::from(height);
        let selected_block = block(selected);
        let selected_height = selected_block.len();
        let mut blocks = VecDeque::from([selected_block]);
        if let Some(hidden) = selected_height.checked_sub(height).filter(|hidden| *hidden > 0) {
            return Self { blocks, skip: scrolled.min(hidden), hidden };
        }
        let middle = (height - selected_height) / 2;
        let (mut first, mut last) = (selected.from, selected.to);
        let (mut above, mut below) = (0, selected_height);
        let mut go_up = |blocks: &mut VecDeque<EntryBlock>, above: &mut usize| {
            let Some(block) = list.before(first).map(&block) else { return false };
            (first, *above) = (block.entry.from, *above + block.len());
            blocks.push_front(block);
            true
        };
        while above < middle && go_up(&mut blocks, &mut above) {}
        while above.min(middle) + below < height {
            let Some(block) = list.after(last).map(&block) else { break };
            (last, below) = (block.entry.to, below + block.len());
            blocks.push_back(block);
        }
        // If the last entry is reached, fill the remaining lines with entries from above.
        while above + below < height && go_up(&mut blocks, &mut above) {}
        let skip = above.saturating_sub(middle).min((above + below).saturating_sub(height));
        let mut window = Self { blocks, skip, hidden: 0 };
        window.drop_hidden(height);
        window
    }

    /// Removes the entries that are not visible.
    fn drop_hidden(&mut self, height: usize) {
        while let Some(first) = self.blocks.front().map(EntryBlock::len)
            && first <= self.skip
        {
            self.skip -= first;
            self.blocks.pop_front();
        }
        let mut rows = 0;
        let is_visible = |block: &&EntryBlock| {
            let before = rows;
            rows += block.len();
            before < self.skip + height
        };
        let visible = self.blocks.iter().take_while(is_visible).count();
        self.blocks.truncate(visible);
    }

    /// Counts the messages after the visible part.
    pub(super) fn newer_count(&self, list: &MessageList<'_>) -> usize {
        self.blocks.back().map_or(0, |block| list.count_after(block.entry.to))
    }
}
