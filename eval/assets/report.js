"use strict";
const PAGE = 50, SAMPLE = 50, RIGHT = "right", WRONG = "wrong";
const at = id => document.getElementById(id);
const store = "adit marks " + at("data").dataset.run;
let columns, names, count, lower = null, orders = {};
let found = [], first = 0, current = 0, open = -1, sample = null;
let by = "score", descending = true;
let history = [], marks = new Map(), places = new Map();

async function unpack() {
  const packed = await fetch("data:;base64," + at("data").textContent);
  return new Response(packed.body.pipeThrough(new DecompressionStream("gzip"))).json();
}

const fixed = digits => value => value === null ? "" : value.toFixed(digits);
// Every column that a pair may have: its heading, what it means, how its values are shown.
const KNOWN = {
  score: ["score", "what pairs are ordered by; a higher one is better", fixed(4)],
  chance: ["probability", "how likely the pair is right, estimated without known pairs", fixed(3)],
  source: ["source", "a sentence of the first corpus"],
  target: ["target", "the sentence of the second corpus that is mined for it"],
  margin: ["margin", "cosine of both sentences, against those of each one's nearest neighbours", fixed(4)],
  cosine: ["cosine", "how near both sentence vectors are: 1 is equal", fixed(4)],
  right: ["known", "whether the pair is among the known ones", value => value ? "right" : "wrong"],
};
// What is shown of a pair that is opened, besides its columns.
const DETAILS = {
  source_id: "source id", target_id: "target id", source_doc: "source document", target_doc: "target document",
  source_mean: "mean cosine of the source's neighbours", target_mean: "mean cosine of the target's neighbours", rank: "place in the source's neighbour list",
};

const key = i => columns.source_id[i] + "\t" + columns.target_id[i];
const markOf = i => marks.get(key(i));

// --- Order and filter ----------------------------------------------------------------------------

function order(name) {
  if (!orders[name]) {
    const values = columns[name], ranks = new Uint32Array(count).map((_, i) => i);
    if (name !== "score") {
      if (typeof values[0] === "string") ranks.sort((i, j) => values[i] < values[j] ? -1 : values[i] > values[j] ? 1 : i - j);
      else { const numbers = Float64Array.from(values, value => value ?? -Infinity); ranks.sort((i, j) => numbers[j] - numbers[i] || i - j); }
    }
    orders[name] = ranks;
  }
  return orders[name];
}

const startsDescending = name => typeof columns[name][0] !== "string";

function texts() {
  const parts = ["source", "target", "source_id", "target_id", "source_doc", "target_doc"].filter(name => columns[name]);
  return lower ??= columns.source.map((_, i) => parts.map(name => columns[name][i]).join("\n").toLowerCase());
}

function filter() {
  const words = at("words").value.toLowerCase(), wanted = at("marked").value;
  const limit = (id, none) => at(id) && at(id).value !== "" ? Number(at(id).value) : none;
  const least = limit("least", -Infinity), most = limit("most", Infinity), likely = limit("likely", -1);
  const all = words ? texts() : null, ranks = order(by), kept = [];
  const turned = descending !== startsDescending(by);
  const marked = new Map([...marks].map(([name, mark]) => [places.get(name), mark]));
  for (let step = 0; step < count; step++) {
    const i = ranks[turned ? count - 1 - step : step];
    if (columns.score[i] < least || columns.score[i] > most) continue;
    if (likely >= 0 && columns.chance[i] < likely) continue;
    if (sample && !sample.has(i)) continue;
    if (wanted && (marked.get(i) ?? "none") !== wanted) continue;
    if (!words || all[i].includes(words)) kept.push(i);
  }
  found = kept;
  first = current = 0;
  open = -1;
  show();
}

function sortBy(name) {
  descending = by === name ? !descending : startsDescending(name);
  by = name;
  heads();
  filter();
}

function drawSample() {
  sample = null;
  filter();
  const rest = [...found], chosen = new Set();
  while (chosen.size < SAMPLE && rest.length) {
    const place = Math.floor(Math.random() * rest.length);
    chosen.add(rest[place]);
    rest[place] = rest.at(-1);
    rest.pop();
  }
  sample = chosen;
  filter();
}

// --- Show ----------------------------------------------------------------------------------------

function heads() {
  const row = document.createElement("tr");
  row.appendChild(document.createElement("th")).textContent = "";
  for (const name of names) {
    const [title, about] = KNOWN[name], th = row.appendChild(document.createElement("th"));
    const button = th.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = name === "score" ? columns.score_name : title;
    button.title = about + "; click to sort";
    button.addEventListener("click", () => sortBy(name));
    if (name === by) th.setAttribute("aria-sort", descending ? "descending" : "ascending");
  }
  row.appendChild(document.createElement("th")).textContent = "mark";
  at("pairs").tHead.replaceChildren(row);
}

function tools(row, i) {
  const td = row.insertCell();
  td.className = "tools";
  for (const [mark, sign, css] of [[RIGHT, "✓", "yes"], [WRONG, "✗", "no"]]) {
    const button = td.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = sign;
    button.className = css;
    button.title = `mark as ${mark}`;
    button.setAttribute("aria-label", button.title);
    button.setAttribute("aria-pressed", markOf(i) === mark);
    button.addEventListener("click", event => { event.stopPropagation(); current = found.indexOf(i) - first; markPair(i, mark); });
  }
}

// The sentence before or after one of a pair: of another pair, or one of those in no pair.
function around(side, name, i) {
  const place = columns[`${side}_${name}`]?.[i] ?? -1;
  return place < 0 ? "" : columns[side][place] ?? columns[`${side}_others`][place - count];
}

function context(td, i) {
  const sides = ["source", "target"].filter(side => around(side, "before", i) || around(side, "after", i));
  if (!sides.length) return;
  const block = td.appendChild(document.createElement("div"));
  block.className = "context";
  for (const side of sides) {
    const text = block.appendChild(document.createElement("p"));
    text.dir = "auto";
    text.append(around(side, "before", i), " ");
    text.appendChild(document.createElement("b")).textContent = columns[side][i];
    text.append(" ", around(side, "after", i));
  }
}

// A text with its words that have no counterpart, which lie between each two positions.
function highlight(parent, text, ends) {
  const all = [...text];  // positions count characters, not UTF-16 units
  let end = 0;
  for (let at = 0; at < ends.length; at += 2) {
    parent.append(all.slice(end, ends[at]).join(""));
    end = ends[at + 1];
    parent.appendChild(document.createElement("mark")).textContent = all.slice(ends[at], end).join("");
  }
  parent.append(all.slice(end).join(""));
}

function detail(body, i) {
  const row = body.insertRow(), td = row.insertCell();
  row.className = "detail";
  td.colSpan = names.length + 2;
  context(td, i);
  const list = td.appendChild(document.createElement("dl"));
  for (const [name, title] of Object.entries(DETAILS)) {
    if (!columns[name]) continue;
    list.appendChild(document.createElement("dt")).textContent = title;
    list.appendChild(document.createElement("dd")).textContent = columns[name][i];
  }
}

function show() {
  const body = document.createElement("tbody"), page = found.slice(first, first + PAGE);
  page.forEach((i, place) => {
    const row = body.insertRow(), mark = markOf(i);
    row.className = [mark ?? (columns.right && !columns.right[i] ? WRONG : ""), place === current ? "current" : ""].join(" ").trim();
    const number = row.insertCell();
    number.className = "whole";
    number.textContent = i + 1;
    for (const name of names) {
      const td = row.insertCell(), value = columns[name][i], [title, , shown] = KNOWN[name];
      if (shown) td.textContent = shown(value);
      else highlight(td, value, columns[name + "_unmatched"]?.[i] ?? []);
      if (shown) { td.className = "whole"; td.dataset.name = name === "score" ? columns.score_name : title; }
      else td.dir = "auto";
    }
    tools(row, i);
    row.addEventListener("click", () => { if (getSelection().isCollapsed) { open = open === i ? -1 : i; current = place; show(); } });
    if (open === i) detail(body, i);
  });
  at("pairs").tBodies[0].replaceWith(body);
  const last = first + page.length;
  at("shown").textContent = (found.length
    ? `${(first + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${found.length.toLocaleString("en")} pairs` : "no pair")
    + (sample ? `, a random sample` : "");
  at("back").disabled = first === 0;
  at("on").disabled = last === found.length;
  at("all").hidden = !sample;
  judge();
}

// --- Marks ---------------------------------------------------------------------------------------

function judge() {
  let right = 0, wrong = 0, sampled = 0, unlike = 0;
  for (const [name, mark] of marks) {
    if (!places.has(name)) continue;
    mark === RIGHT ? right++ : wrong++;
    if (sample?.has(places.get(name))) { sampled++; if (mark === WRONG) unlike++; }
  }
  let line = right + wrong ? `Marked: ${right} right, ${wrong} wrong.` : "Nothing marked yet.";
  if (sampled) {
    const [low, high] = interval(unlike, sampled), percent = share => (100 * share).toFixed(1) + "%";
    line += ` Of this sample ${sampled} marked, ${percent(unlike / sampled)} of them wrong (95% interval ${percent(low)} to ${percent(high)}).`;
  }
  at("judged").textContent = line;
  at("undo").disabled = !history.length;
  at("export").disabled = !marks.size;
}

// Wilson's, of a share.
function interval(wrong, n) {
  const z = 1.96, p = wrong / n, middle = p + z * z / (2 * n), half = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return [Math.max(0, (middle - half) / (1 + z * z / n)), Math.min(1, (middle + half) / (1 + z * z / n))];
}

function replay() {
  marks = new Map();
  for (const [name, mark] of history) mark ? marks.set(name, mark) : marks.delete(name);
}

function keep() {
  try { localStorage.setItem(store, JSON.stringify(history)); }
  catch { at("kept").textContent = "This browser keeps no marks for this page: export them before you close it."; }
}

function markPair(i, mark) {
  history.push([key(i), markOf(i) === mark ? null : mark]);
  replay();
  keep();
  show();
}

function undo() {
  const last = history.pop();
  if (!last) return;
  replay();
  keep();
  const place = found.indexOf(places.get(last[0]));
  if (place >= 0) { first = place - place % PAGE; current = place % PAGE; }
  show();
}

function exportMarks() {
  const lines = [...marks].map(([name, mark]) => `${name}\t${mark}\n`).join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines], { type: "text/tab-separated-values" }));
  link.download = "marks.tsv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// --- Moving --------------------------------------------------------------------------------------

function turn(pages) {
  const next = first + pages * PAGE;
  if (next >= 0 && next < found.length) { first = next; current = 0; show(); }
}

function move(step) {
  const place = first + current + step;
  if (place < 0 || place >= found.length) return;
  first = place - place % PAGE;
  current = place % PAGE;
  show();
  document.querySelector("#pairs tr.current")?.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  j: () => move(1), k: () => move(-1), n: () => turn(1), p: () => turn(-1), u: undo,
  r: () => judgeCurrent(RIGHT), w: () => judgeCurrent(WRONG),
  o: () => { const i = found[first + current]; open = open === i ? -1 : i; show(); },
};

function judgeCurrent(mark) {
  const i = found[first + current];
  if (i === undefined) return;
  const had = markOf(i);
  markPair(i, mark);
  if (had !== mark) move(1);
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(); }
}

// --- Start ---------------------------------------------------------------------------------------

function start(read) {
  columns = read;
  count = columns.score.length;
  names = Object.keys(KNOWN).filter(name => columns[name]);
  for (let i = 0; i < count; i++) places.set(key(i), i);
  try { history = JSON.parse(localStorage.getItem(store)) ?? []; } catch { history = []; }
  replay();
  heads();
  filter();
  at("filter").addEventListener("input", filter);
  at("filter").addEventListener("submit", event => event.preventDefault());
  for (const [id, act] of Object.entries({ back: () => turn(-1), on: () => turn(1), undo, export: exportMarks, sample: drawSample, all: () => { sample = null; filter(); } }))
    at(id).addEventListener("click", act);
  document.addEventListener("keydown", press);
  for (const button of document.querySelectorAll("button[data-least], button[data-words]")) {
    button.disabled = false;
    button.addEventListener("click", () => {
      for (const [id, value] of [["least", button.dataset.least ?? ""], ["words", button.dataset.words ?? ""]]) at(id).value = value;
      sample = null;
      filter();
      at("filter").scrollIntoView();
    });
  }
  for (const part of document.querySelectorAll(".rejected")) part.addEventListener("change", () => {
    const boxes = [...part.querySelectorAll("input")], correct = boxes.filter(box => box.checked).length;
    const share = correct / boxes.length;
    part.querySelector("output").textContent = `${correct} of ${boxes.length} are correct: about ${Math.round(share * part.dataset.count).toLocaleString("en")} in all.`;
  });
  // What sorting and filtering need is made while nobody waits for it.
  const later = [texts, ...names.map(name => () => order(name))];
  const idle = self.requestIdleCallback ?? (work => setTimeout(work, 50));
  const work = () => { later.shift()?.(); if (later.length) idle(work); };
  idle(work);
}

unpack().then(start);
