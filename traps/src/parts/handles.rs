//! The names of descriptors.

use crate::core::table::HandleId;

/// The names of descriptors. The kernel has the table of their handles, so a name in use takes no
/// memory here, and an index that is free takes four bytes.
#[derive(Debug, Default)]
pub(crate) struct HandleNames {
    /// The free indexes. The one freed last is used next. If none is free, the indexes in use are
    /// those from 0, so their number is the next.
    free: Vec<u32>,
    in_use: u32,
    /// The serial number of the newest name.
    pub(crate) last: u32,
}

impl HandleNames {
    pub(crate) fn make(&mut self) -> HandleId {
        self.last = self.last.wrapping_add(1).max(1);
        let index = self.free.pop().unwrap_or(self.in_use);
        self.in_use += 1;
        HandleId::new(index, self.last)
    }

    /// Frees the index of a name. The kernel has found its handle, so it frees the name once.
    pub(crate) fn free(&mut self, handle: HandleId) {
        self.in_use -= 1;
        self.free.push(handle.index);
    }

    /// Frees all indexes. The serial numbers go on, so no name is made twice.
    pub(crate) fn clear(&mut self) {
        *self = HandleNames { last: self.last, ..HandleNames::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_made_twice_although_its_index_is_used_again() {
        let mut names = HandleNames::default();
        let made = [names.make(), names.make()];
        made.into_iter().for_each(|handle| names.free(handle));
        let again = [names.make(), names.make(), names.make()];
        assert_eq!(again.map(|it| (it.index, it.serial())), [(1, 3), (0, 4), (2, 5)]);
        names.clear();
        assert_eq!(names.make(), HandleId::new(0, 6));
    }
}
