//! What a task is called and where it was spawned, in one word: the tasks of one place share it,
//! and one after the other the memory that they lie in.
//!
//! Knows no task.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr;
use std::rc::Rc;

use crate::limits::NAMES;
use crate::protocol::Site;

/// The name of a task and its place.
pub(crate) struct Label {
    pub(crate) name: Cow<'static, str>,
    pub(crate) site: Site,
    /// What its tasks lay in that are gone, for the next ones: a list of one type.
    spares: RefCell<Option<Box<dyn Any>>>,
}

thread_local! {
    static LABELS: RefCell<Labels> = const { RefCell::new(Labels::new()) };
}

struct Labels {
    /// The one that was asked for last: who spawns often spawns often there.
    last: Option<Rc<Label>>,
    shared: BTreeMap<Key, Rc<Label>>,
}

/// Where the name is and how long, and where the site is. It is looked up; that the addresses have
/// an order is seen by nobody.
type Key = (usize, usize, usize);

impl Label {
    fn new(name: Cow<'static, str>, site: Site) -> Rc<Label> {
        Rc::new(Label { name, site, spares: RefCell::default() })
    }

    /// A spare one of that type.
    #[inline]
    pub(crate) fn take_spare<B: 'static>(&self) -> Option<B> {
        self.spares.borrow_mut().as_mut()?.downcast_mut::<Vec<B>>()?.pop()
    }

    /// Keeps a spare one, or drops it: if it has `most`, if it has those of another type (a place
    /// in a generic function), or if nobody will ask, as no other task can have this label.
    #[inline]
    pub(crate) fn keep_spare<B: 'static>(self: Rc<Label>, spare: B, most: usize) {
        if Rc::strong_count(&self) == 1 {
            return;
        }
        let mut spares = self.spares.borrow_mut();
        match spares.get_or_insert_with(|| Box::new(Vec::<B>::new())).downcast_mut::<Vec<B>>() {
            Some(spares) if spares.len() < most => spares.push(spare),
            _ => {}
        }
    }

    /// That of a task: shared if its name is the program's own, made for it otherwise.
    #[inline]
    pub(crate) fn of(name: Cow<'static, str>, site: Site) -> Rc<Label> {
        match name {
            Cow::Borrowed(name) => Label::shared(name, site),
            name => Label::new(name, site),
        }
    }

    fn shared(name: &'static str, site: Site) -> Rc<Label> {
        let found = LABELS.try_with(|labels| {
            let labels = &mut *labels.borrow_mut();
            match &labels.last {
                Some(last) if last.is(name, site) => last.clone(),
                _ => labels.look_up(name, site),
            }
        });
        // The thread is ending.
        found.unwrap_or_else(|_| Label::new(name.into(), site))
    }

    #[inline]
    fn is(&self, name: &'static str, site: Site) -> bool {
        ptr::eq(&raw const *self.name, name) && ptr::eq(self.site, site)
    }
}

impl Labels {
    const fn new() -> Labels {
        Labels { last: None, shared: BTreeMap::new() }
    }

    #[inline(never)]
    fn look_up(&mut self, name: &'static str, site: Site) -> Rc<Label> {
        let key = (name.as_ptr().addr(), name.len(), ptr::from_ref(site).addr());
        let new = || Label::new(name.into(), site);
        let label = match self.shared.get(&key) {
            Some(label) => label.clone(),
            None if self.shared.len() < NAMES => self.shared.entry(key).or_insert_with(new).clone(),
            None => return new(),
        };
        self.last = Some(label.clone());
        label
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;

    #[test]
    fn the_tasks_of_one_place_share_a_label_and_no_others_do() {
        let (here, there) = (Location::caller(), Location::caller());
        let first = Label::of("a".into(), here);
        let other = Label::of("b".into(), here);
        assert!(Rc::ptr_eq(&first, &Label::of("a".into(), here)));
        assert!(Rc::ptr_eq(&other, &Label::of("b".into(), here)));
        for different in [("ab", here), ("a", there)] {
            let label = Label::of(different.0.into(), different.1);
            assert!(!Rc::ptr_eq(&first, &label));
            assert_eq!((&*label.name, label.site.column()), (different.0, different.1.column()));
        }
        let owned = Label::of(String::from("a").into(), here);
        assert!(!Rc::ptr_eq(&first, &owned) && owned.name == "a");
    }

    #[test]
    fn a_label_keeps_spares_of_one_type_up_to_a_number() {
        let label = Label::of("spares".into(), Location::caller());
        assert_eq!(label.take_spare::<u8>(), None);
        for n in 1..=3_u8 {
            label.clone().keep_spare(n, 2);
        }
        label.clone().keep_spare("another type", 2);
        assert_eq!(label.take_spare::<&str>(), None);
        let found = [1, 2, 3].map(|_| label.take_spare::<u8>());
        assert_eq!(found, [Some(2), Some(1), None]);
    }

    #[test]
    fn a_label_that_only_one_task_can_have_keeps_no_spare() {
        let probe = Rc::new(());
        Label::of(String::from("own").into(), Location::caller()).keep_spare(probe.clone(), 1);
        assert_eq!(Rc::strong_count(&probe), 1);
        Label::of("shared".into(), Location::caller()).keep_spare(probe.clone(), 1);
        assert_eq!(Rc::strong_count(&probe), 2);
    }

    #[test]
    fn names_without_end_are_not_kept() {
        let here = Location::caller();
        for n in 0..2 * NAMES {
            let name: &'static str = n.to_string().leak();
            assert_eq!(Label::of(name.into(), here).name, name);
        }
        LABELS.with_borrow(|labels| assert_eq!(labels.shared.len(), NAMES));
    }
}
