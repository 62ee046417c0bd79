'use strict';
// Figures, warnings, the table of collectives, the source lines. All texts of the program
// become text nodes.
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const text = k => data.texts[k];

function h(tag, attributes, ...children) {
  const svg = ['svg', 'g', 'rect', 'text', 'path', 'title', 'marker', 'defs'].includes(tag);
  const made = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag)
                   : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'on') for (const [e, f] of Object.entries(value)) made.addEventListener(e, f);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter(c => c !== null && c !== undefined));
  return made;
}
function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let k = 0;
  while (n >= 1024 && k + 1 < units.length) { n /= 1024; ++k; }
  return `${k === 0 || n >= 100 ? Math.round(n) : n.toPrecision(3)} ${units[k]}`;
}
function seconds(s) {
  if (s >= 1) return `${s.toPrecision(3)} s`;
  if (s >= 1e-3) return `${(s * 1e3).toPrecision(3)} ms`;
  if (s >= 1e-6) return `${(s * 1e6).toPrecision(3)} \u00b5s`;
  return `${Math.round(s * 1e9)} ns`;
}
const count = n => Number(n).toLocaleString('en-US');

const all = data.collectives.map((c, k) => ({
  ...c, index: k, opcode: text(c.opcode), cause: text(c.cause), source: text(c.source),
  why: text(c.why), total: c.bytes * c.trips,
  time: c.seconds * c.trips,
}));
// `source`: a source line, null for all of them.
const state = {sort: 'total', down: true, filter: '', opcode: '', source: null, selected: -1,
               rows: []};

function showFigures() {
  document.title = `${data.name} \u2013 shardcall`;
  $('title').textContent = data.name || 'program';
  const mesh = data.mesh.map(([name, size]) => `${name}=${size}`).join(' \u00d7 ');
  $('subtitle').textContent = `${count(data.devices)} devices${mesh ? `, ${mesh}` : ''}. ` +
      `${count(data.instructions[0])} instructions in, ${count(data.instructions[1])} per device ` +
      `out. shardcall ${data.version}`;
  const sending = all.reduce((s, c) => s + c.time, 0);
  const step = (data.steps[data.entry] || []).reduce((s, e) => s + e[1], 0);
  const figure = (value, what, id) =>
      h('div', {class: 'figure'}, h('b', {id}, value), h('span', {}, what));
  $('figures').append(
      figure(bytes(data.bytes), 'sent by each device in a step', 'total-bytes'),
      figure(count(all.length), `collectives, ${count(all.reduce((s, c) => s + c.trips, 0))} ` +
             'executions', 'total-count'),
      figure(bytes(data.memory[0]), `of each device's memory: ${bytes(data.memory[1])} ` +
             `arguments, ${bytes(data.memory[2])} outputs` +
             (data.memory[4] > 0 ? ` (${bytes(data.memory[4])} of them in donated arguments)` : '') +
             `, ${bytes(data.memory[3])} temporaries`,
             'memory'),
      figure(seconds(step), 'a step, by the cost model', 'step-time'),
      figure(step <= 0 ? '0 %' : sending < step && sending > 0.99 * step ? '> 99 %'
             : `${Math.round(100 * sending / step)} %`,
             `of it sending: ${seconds(sending)}`, 'sending'));
}

function showWarnings() {
  if (!data.warnings.length) return;
  $('warnings').hidden = false;
  $('warnings-title').textContent = `Warnings (${count(data.warnings.length)})`;
  const codes = new Map();
  for (const w of data.warnings) {
    if (!codes.has(w.code)) codes.set(w.code, []);
    codes.get(w.code).push(w);
  }
  for (const [code, list] of codes) {
    const item = w => h('li', {}, w.op ? h('code', {}, `%${w.op}`) : null, ` ${w.text} `,
        w.op && all.some(c => c.cause.includes(`%${w.op}:`)) ? h('button', {type: 'button',
          on: {click: () => filterBy(`%${w.op}:`)}}, 'show') : null);
    $('warning-list').append(h('li', {}, h('p', {}, h('b', {}, code), ` ${list[0].fix}`),
        h('ul', {}, ...list.slice(0, 200).map(item),
          list.length > 200 ? h('li', {}, `and ${count(list.length - 200)} more`) : null)));
  }
}

const COLUMNS = [['name', 'Collective', 20], ['opcode', 'Opcode', 17], ['total', 'Sent', 11],
                 ['trips', 'Times', 8], ['size', 'Groups', 11], ['time', 'Est. time', 11],
                 ['source', 'At', 22]];
const NUMBERS = new Set(['total', 'trips', 'size', 'time']);
const ROW = 33;

function showHead() {
  $('head').replaceChildren(...COLUMNS.map(([key, title, width]) => h('th', {
    scope: 'col', style: `width:${width}%`, class: NUMBERS.has(key) ? 'number' : null,
    'aria-sort': state.sort !== key ? 'none' : state.down ? 'descending' : 'ascending',
  }, h('button', {type: 'button', 'data-sort': key, on: {click: () => {
    state.down = state.sort === key ? !state.down : NUMBERS.has(key);
    state.sort = key;
    refresh();
  }}}, title + (state.sort !== key ? '' : state.down ? ' \u2193' : ' \u2191')))));
}

function refresh() {
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const order = state.down ? -1 : 1;
  state.rows = all.filter(c => (!state.opcode || c.opcode === state.opcode) &&
      (state.source === null || c.source === state.source) && words.every(
      w => `%${c.name} ${c.opcode} ${c.cause} ${c.source}`.toLowerCase().includes(w)));
  state.rows.sort((a, b) => {
    const x = a[state.sort], y = b[state.sort];
    return (x < y ? -order : x > y ? order : 0) || a.index - b.index;
  });
  const sum = state.rows.reduce((s, c) => s + c.total, 0);
  $('shown').textContent = `${count(state.rows.length)} of ${count(all.length)}, ${bytes(sum)}`;
  $('none').hidden = state.rows.length > 0;
  $('none').textContent = all.length ? 'Nothing fits the filter.'
                                     : 'The devices send nothing to each other.';
  for (const b of $('opcodes').children) {
    b.setAttribute('aria-pressed', b.dataset.opcode === state.opcode);
  }
  showHead();
  $('scroll').scrollTop = 0;
  drawRows();
}

// Only the rows that can be seen.
function drawRows() {
  const scroll = $('scroll');
  const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - 6);
  const last = Math.min(state.rows.length, first + Math.ceil(scroll.clientHeight / ROW) + 14);
  const space = n => h('tr', {class: 'space', 'aria-hidden': 'true'},
                       h('td', {colspan: COLUMNS.length, style: `height:${n * ROW}px`}));
  const cell = (c, key) => key === 'total' ? bytes(c.total) : key === 'time' ? seconds(c.time)
      : key === 'trips' ? count(c.trips) : key === 'size' ? `${count(c.groups)} \u00d7 ${count(c.size)}`
      : key === 'name' ? `%${c.name}` : c[key];
  $('rows').replaceChildren(space(first), ...state.rows.slice(first, last).map(c => h('tr', {
    'data-index': c.index, tabindex: 0, 'aria-selected': c.index === state.selected,
    on: {click: () => select(c.index), keydown: e => {
      if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); select(c.index); }
    }},
  }, ...COLUMNS.map(([key]) => h('td', {class: NUMBERS.has(key) ? 'number' : null,
                                        title: cell(c, key)}, cell(c, key))))),
  space(state.rows.length - last));
}

function pressLine(source) {
  state.source = source;
  for (const b of $('lines').querySelectorAll('button')) {
    b.setAttribute('aria-pressed', b.dataset.source === source);
  }
}
function filterBy(words) {
  state.filter = $('filter').value = words;
  pressLine(null);
  refresh();
  $('sent-title').scrollIntoView({block: 'nearest'});
}

function showLines() {
  const lines = new Map();
  for (const c of all) {
    const line = lines.get(c.source) || {total: 0, count: 0};
    line.total += c.total;
    ++line.count;
    lines.set(c.source, line);
  }
  const sorted = [...lines].sort((a, b) => b[1].total - a[1].total);
  const most = sorted.length ? sorted[0][1].total || 1 : 1;
  $('lines').append(...sorted.slice(0, 400).map(([name, line]) => h('li', {}, h('button', {
    type: 'button', 'aria-pressed': 'false', 'data-source': name,
    on: {click: () => {
      pressLine(state.source === name ? null : name);
      refresh();
      $('sent-title').scrollIntoView({block: 'nearest'});
    }},
  }, h('span', {class: 'name', title: name}, name || 'no source line'),
     h('span', {class: 'bar', style: `width:${100 * line.total / most}%`}),
     h('span', {class: 'number'}, bytes(line.total)),
     h('span', {class: 'number quiet'}, `${count(line.count)} \u00d7`)))));
  if (!sorted.length) $('lines').append(h('li', {class: 'quiet'}, 'Nothing is sent.'));
}
