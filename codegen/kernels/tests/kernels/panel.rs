//! Where packed weights lie.

use csdfc_kernels::panel::*;

#[test]
fn a_panel_is_as_wide_as_the_channels_that_are_left() {
    // Two groups of 18: panels of 16 and 2 channels, of a bias, two weights and a slope each.
    let panels = Panels { groups: 2, filters: 18, steps: 2, slopes: true, kind: Kind::Elements };
    let value = |filter: usize, place: usize| (10 * filter + place) as f32;
    let [bias, slopes] = [0, 3].map(|place| (0..36).map(|f| value(f, place)).collect::<Vec<_>>());
    let mut packed = vec![f32::NAN; panels.len()];
    panels.pack(|filter, step| value(filter, 1 + step), &bias, &slopes, &mut packed);
    let mut want = Vec::new();
    for channels in [0..16, 16..18, 18..34, 34..36] {
        want.extend((0..4).flat_map(|place| channels.clone().map(move |filter| value(filter, place))));
    }
    want.extend([0.0; 14]);
    assert_eq!(packed, want);
    // In a narrow panel, vectors reach beyond its end as far as they are longer.
    assert_eq!([16, 18, 2].map(|channels| panels.reach(channels)), [64, 72 + 14, 8 + 14]);
}

#[test]
fn whole_panels_have_nothing_beside() {
    let panels = Panels { groups: 3, filters: 32, steps: 5, slopes: false, kind: Kind::Elements };
    assert_eq!((panels.len(), panels.reach(32)), (3 * 32 * 6, 32 * 6));
}
