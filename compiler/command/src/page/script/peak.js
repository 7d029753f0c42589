// Why the peak is as high as it is: what is in use then, and what each of it would need to shrink.

function peakSection(plan, letter = "") {
  const title = letter ? `The peak of ${letter}` : "The peak";
  const { peak, memory } = plan;
  if (!peak.occupied.length) return null;
  const firings = peak.firings.map(([cnn, layer, firing]) => {
    const { firings } = plan.cnns[cnn].layers[layer];
    return nameOf(plan, cnn, layer) + (firings > 1 ? ` (firing ${firing + 1} of ${grouped(firings)})` : "");
  });
  const sum = peak.occupied.reduce((sum, { bytes }) => sum + bytes, 0);
  const reached = memory.proven ? "The arena has exactly these bytes: the smallest for this schedule (proven)."
    : plan.certificate.claimed ? `By exhaustive search, this schedule needs at least ${exact(plan.certificate.claimed)}; the arena has ${exact(memory.arena)}.`
      : `This schedule needs at least that; the arena has ${exact(memory.arena)}.`;
  const most = peakOfUsage(plan).bytes;
  const several = most < sum ? ` They run at the same time, so the arena has room for all their peaks. In the frames above they do not peak together: the curve reaches ${exact(most)}.` : "";
  const when = most < sum ? `Most bytes would be in use if ${firings.join(" and ")} fired together` : `Most bytes are in use while ${firings.join(" and ")} ${firings.length > 1 ? "fire" : "fires"}`;
  const columns = [
    { title: "In use", find: row => findable(plan, plan.places[row.place].cnn, plan.places[row.place].layer), text: row => placeName(plan, plan.places[row.place]) },
    { title: "Kind", short: true, text: row => plan.places[row.place].kind },
    { title: "Bytes", text: row => grouped(row.bytes), value: row => row.bytes },
    { title: "Share", text: row => percent(share(row.bytes, sum)), value: row => row.bytes, bar: row => share(row.bytes, sum) },
    { title: "Rows in use", text: row => {
      const place = plan.places[row.place];
      const rows = grouped(row.rows[1] - row.rows[0]);
      return !isRing(place) ? "–" : placeKind(place)[1] === "state" ? `${rows}, of several hops`
        : `${rows} of ${grouped(plan.cnns[place.cnn].layers[place.layer].height)}`;
    }, value: row => row.rows[1] - row.rows[0] },
    { title: "What it would need to shrink", text: row => row.hint },
  ];
  return html("section", { id: `peak${letter}`, "aria-label": title }, html("h2", null, title),
    html("p", null, `${when}: ${exact(sum)}, in ${peak.occupied.length} ${peak.occupied.length === 1 ? "place" : "places"}.${several} ${reached}`),
    table(letter ? `What is in use at the peak of ${letter}` : "What is in use at the peak", columns, peak.occupied, true));
}
