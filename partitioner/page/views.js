// The selected collective: who talks to whom, the ops around it; the step; light and dark.
function select(index) {
  state.selected = index;
  drawRows();
  showDetail(all[index]);
  drawTimeline();
}

function showDetail(c) {
  const detail = $('detail');
  if (!c) {
    detail.replaceChildren(h('h3', {}, 'The mesh'), meshOf(null),
        h('p', {class: 'quiet'}, all.length ? 'Select a collective to see who asked for it, who ' +
          'talks to whom, and the ops around it.' : ''));
    return;
  }
  const line = (name, value) => value ? [h('dt', {}, name), h('dd', {}, value)] : [];
  const executions = c.trips === 1 ? '' : `, ${count(c.trips)} times: ${bytes(c.total)}`;
  detail.replaceChildren(
      h('h3', {}, `%${c.name}`),
      h('dl', {}, ...line('what', c.opcode), ...line('sends', bytes(c.bytes) + executions),
        ...line('for', c.cause), ...line('at', c.source), ...line('why', c.why)),
      h('h4', {}, data.groups[c.devices] && data.groups[c.devices].pairs ? 'Who sends to whom'
        : `Who talks to whom: ${count(c.groups)} group${c.groups === 1 ? '' : 's'} of ` +
          count(c.size)),
      meshOf(data.groups[c.devices]),
      h('h4', {}, 'The ops around it'), graphAt(c.node));
}

function meshOf(groups) {
  if (data.devices > 1024) {
    return h('p', {class: 'quiet'}, `${count(data.devices)} devices are too many to draw.`);
  }
  const axes = data.mesh.filter(a => a[1] > 1);
  let columns = axes.length > 1 ? axes[axes.length - 1][1] : Math.ceil(Math.sqrt(data.devices));
  if (axes.length === 1 && data.devices <= 16) columns = data.devices;
  while (columns > 32 && columns % 2 === 0) columns /= 2;
  const rows = Math.ceil(data.devices / columns);
  const cell = Math.max(11, Math.min(38, Math.floor(380 / columns)));
  const left = 4, top = 18, of = new Map();
  const lists = groups && groups.lists;
  if (lists) lists.forEach((list, g) => list.forEach(d => of.set(d, g)));
  const at = d => [left + (d % columns) * cell + cell / 2, top + Math.floor(d / columns) * cell + cell / 2];
  const svg = h('svg', {viewBox: `0 0 ${Math.max(220, left * 2 + columns * cell)} ${top + rows * cell + 4}`,
                        width: Math.max(220, left * 2 + columns * cell), role: 'img',
                        'aria-label': `${data.devices} devices`, id: 'mesh'});
  svg.append(h('defs', {}, h('marker', {id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4,
    markerWidth: 6, markerHeight: 6, orient: 'auto'}, h('path', {d: 'M0 0 L8 4 L0 8 z', fill: 'currentColor'}))));
  svg.append(h('text', {x: left, y: 12, class: 'quiet'},
               axes.map(([name, size]) => `${name}=${size}`).join(' \u00d7 ')));
  for (let d = 0; d < data.devices; ++d) {
    const [x, y] = at(d);
    const g = of.get(d);
    const color = g === undefined ? 'var(--row)' : `hsl(${(g * 137.5 + 210) % 360} 45% ${dark() ? 34 : 82}%)`;
    svg.append(h('g', {}, h('rect', {x: x - cell / 2 + 1, y: y - cell / 2 + 1, width: cell - 2,
                                    height: cell - 2, rx: 4, fill: color, stroke: 'var(--line)'}),
        cell >= 20 ? h('text', {x, y: y + 4, 'text-anchor': 'middle'}, d) : null,
        h('title', {}, g === undefined ? `device ${d}` : `device ${d}, group ${g}`)));
  }
  for (const [from, to] of (groups && groups.pairs || []).slice(0, 256)) {
    if (from === to) continue;
    const [x, y] = at(from), [u, v] = at(to);
    const bend = Math.min(24, 6 + Math.hypot(u - x, v - y) / 6);
    const l = Math.hypot(u - x, v - y) || 1;
    svg.append(h('path', {class: 'arrow', 'marker-end': 'url(#tip)', style: 'color:var(--send)',
      d: `M${x} ${y} Q${(x + u) / 2 - (v - y) / l * bend} ${(y + v) / 2 + (u - x) / l * bend} ${u} ${v}`}));
  }
  return svg;
}

// Two hops: operands to the left, users to the right.
let users = null;
function graphAt(center) {
  if (!data.nodes[center]) {
    return h('p', {class: 'quiet'}, data.nodes_left_out ? 'This program has too many ops around '
        + 'its collectives: those of this one are left out.' : 'There is none.');
  }
  if (!users) {
    users = new Map();
    for (const [id, node] of Object.entries(data.nodes)) {
      for (const o of node[3]) {
        if (!users.has(o)) users.set(o, []);
        users.get(o).push(Number(id));
      }
    }
  }
  const has = id => data.nodes[id] !== undefined;
  const column = new Map([[center, 0]]), columns = [[], [], [center], [], []];
  const spread = (from, by, next) => {
    for (const id of from) for (const n of next(id).filter(has)) {
      if (column.has(n) || columns[by + 2].length >= 7) continue;
      column.set(n, by);
      columns[by + 2].push(n);
    }
  };
  const operands = id => data.nodes[id][3], uses = id => users.get(id) || [];
  spread([center], -1, operands); spread(columns[1], -2, operands);
  spread([center], 1, uses); spread(columns[3], 2, uses);
  const shown = columns.map((ids, k) => [k, ids]).filter(([, ids]) => ids.length);
  const width = 122, height = 40, gapX = 20, gapY = 10;
  const tall = Math.max(...shown.map(([, ids]) => ids.length)) * (height + gapY);
  const place = new Map();
  shown.forEach(([, ids], k) => ids.forEach((id, r) => place.set(id, [
    2 + k * (width + gapX), (tall - ids.length * (height + gapY)) / 2 + r * (height + gapY) + 2])));
  const wide = shown.length * (width + gapX) - gapX + 4;
  const svg = h('svg', {viewBox: `0 0 ${wide} ${tall + 4}`, width: wide, id: 'graph',
                        'aria-label': 'Ops around the collective'});
  for (const [id, [x, y]] of place) for (const o of operands(id)) {
    if (!place.has(o)) continue;
    const [u, v] = place.get(o);
    svg.append(h('path', {class: 'edge', d: `M${u + width} ${v + height / 2} C${u + width + 14} ` +
      `${v + height / 2} ${x - 14} ${y + height / 2} ${x} ${y + height / 2}`}));
  }
  const sends = new Set(all.map(c => c.node)), fits = s => s.length > 19 ? `${s.slice(0, 18)}\u2026` : s;
  for (const [id, [x, y]] of place) {
    const [name, opcode, shape] = data.nodes[id];
    const open = () => {
      const replaced = graphAt(id);
      svg.parentElement.replaceWith(replaced);
      const focus = replaced.querySelector('.here');
      if (focus) focus.focus();
    };
    svg.append(h('g', {class: `node${sends.has(id) ? ' sends' : ''}${id === center ? ' here' : ''}`,
      tabindex: 0, role: 'button', 'data-node': id, 'aria-label': `${text(opcode)} ${name}`,
      on: {click: open, keydown: e => { if (e.key === 'Enter') open(); }}},
      h('rect', {x, y, width, height, rx: 6}),
      h('text', {x: x + 7, y: y + 16}, fits(`${text(opcode)}`)),
      h('text', {x: x + 7, y: y + 31, class: 'quiet'}, fits(text(shape))),
      h('title', {}, `%${name} = ${text(shape)} ${text(opcode)}`)));
  }
  return h('div', {style: 'overflow-x:auto'}, svg,
           h('p', {class: 'quiet'}, 'Ops up to two steps from a collective.'));
}

// Two lanes of a computation's events in their order; loops open on a click.
const time = {path: [], from: 0, to: 1, marks: []};
const eventsOf = comp => data.steps[comp] || [];
const lengthOf = comp => eventsOf(comp).reduce((s, e) => s + e[1], 0) || 1e-9;

function openStep(path) {
  time.path = path;
  time.from = 0;
  time.to = lengthOf(path[path.length - 1].comp);
  $('path').replaceChildren(...path.map((p, k) => h('button', {type: 'button',
    on: {click: () => openStep(path.slice(0, k + 1))}}, p.name)));
  drawTimeline();
}
function zoom(factor, around) {
  const length = lengthOf(time.path[time.path.length - 1].comp);
  const middle = around === undefined ? (time.from + time.to) / 2 : around;
  const span = Math.min(length, (time.to - time.from) * factor);
  const share = (middle - time.from) / (time.to - time.from);
  time.from = Math.max(0, Math.min(length - span, middle - share * span));
  time.to = time.from + span;
  drawTimeline();
}
function drawTimeline() {
  const canvas = $('timeline'), ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = 112;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext('2d'), style = getComputedStyle(document.documentElement);
  const color = name => style.getPropertyValue(name).trim();
  pen.scale(ratio, ratio);
  pen.font = '12px system-ui, sans-serif';
  const left = 92, scale = (width - left - 8) / (time.to - time.from);
  pen.fillStyle = color('--quiet');
  pen.fillText('compute', 12, 34);
  pen.fillText('send', 12, 72);
  for (let k = 0; k <= 4; ++k) {
    const x = left + k * (width - left - 8) / 4;
    pen.fillRect(x, 92, 1, 5);
    pen.textAlign = k === 4 ? 'right' : k === 0 ? 'left' : 'center';
    pen.fillText(seconds(time.from + k * (time.to - time.from) / 4), x, 108);
  }
  pen.textAlign = 'left';
  time.marks = [];
  const events = eventsOf(time.path[time.path.length - 1].comp);
  // Of many, what is thinner than a pixel is as faint as it is short.
  const least = events.length < width / 4 ? 1 : 0;
  let at = 0;
  for (const event of events) {
    const [kind, length] = event, begin = at;
    at += length;
    if (at < time.from || begin > time.to) continue;
    const x = left + Math.max(0, begin - time.from) * scale;
    const end = left + (Math.min(at, time.to) - time.from) * scale, lane = kind === 1 ? 1 : 0;
    const y = lane ? 54 : 16, w = Math.max(least, end - x - (end - x > 3 ? 1 : 0));
    const chosen = kind === 1 && event[2] === state.selected;
    pen.fillStyle = color(chosen ? '--mark' : kind === 1 ? '--send' : '--work');
    pen.globalAlpha = kind === 2 ? 0.55 : 1;
    pen.fillRect(x, y, w, 28);
    pen.globalAlpha = 1;
    const name = kind === 1 ? `%${all[event[2]].name}` : kind === 2 ? text(event[2])
        : event[2] === 1 ? `%${text(event[3])}` : `${count(event[2])} ops, longest %${text(event[3])}`;
    if (w > 64) {
      pen.save();
      pen.beginPath();
      pen.rect(x, y, w - 4, 28);
      pen.clip();
      pen.fillStyle = dark() ? '#16181c' : '#ffffff';
      pen.fillText(name, x + 6, y + 18);
      pen.restore();
    }
    time.marks.push({x, y, w, event, says: `${name}, ${seconds(length)}`});
  }
}
function markAt(e) {
  const box = $('timeline').getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
  return time.marks.find(m => x >= m.x - 1 && x <= m.x + m.w + 1 && y >= m.y && y <= m.y + 28);
}

function dark() { return document.documentElement.classList.contains('dark'); }
function setDark(on) {
  document.documentElement.classList.toggle('dark', on);
  $('theme').setAttribute('aria-pressed', on);
  showDetail(all[state.selected]);
  drawTimeline();
}

function start() {
  showFigures();
  showWarnings();
  const opcodes = [...new Set(all.map(c => c.opcode))].sort();
  $('opcodes').append(...opcodes.map(o => h('button', {type: 'button', 'data-opcode': o, on: {
    click: () => { state.opcode = state.opcode === o ? '' : o; refresh(); }}}, o)));
  $('filter').addEventListener('input', e => { state.filter = e.target.value; refresh(); });
  $('scroll').addEventListener('scroll', drawRows);
  showLines();
  refresh();
  $('theme').addEventListener('click', () => setDark(!dark()));
  $('zoom-in').addEventListener('click', () => zoom(0.5));
  $('zoom-out').addEventListener('click', () => zoom(2));
  $('zoom-all').addEventListener('click', () => openStep(time.path));
  const canvas = $('timeline');
  canvas.addEventListener('wheel', e => {
    e.preventDefault();
    const box = canvas.getBoundingClientRect();
    const share = Math.max(0, (e.clientX - box.left - 92) / (box.width - 100));
    zoom(e.deltaY > 0 ? 1.25 : 0.8, time.from + share * (time.to - time.from));
  }, {passive: false});
  canvas.addEventListener('mousemove', e => {
    const mark = markAt(e);
    $('under').textContent = mark ? mark.says : '';
  });
  canvas.addEventListener('click', e => {
    const mark = markAt(e);
    if (!mark) return;
    if (mark.event[0] === 1) select(mark.event[2]);
    const callees = mark.event[0] === 2 ? mark.event[3].filter(c => eventsOf(c).length) : [];
    if (callees.length) {
      openStep([...time.path, {name: text(mark.event[2]), comp: callees[0]}]);
    }
  });
  window.addEventListener('resize', () => { drawRows(); drawTimeline(); });
  const rate = n => `${(n / 1e9).toLocaleString('en-US')} GB/s`;
  $('assumed').textContent = 'One thing after another, as the plan weighs its choices: ' +
      `${rate(data.cost.bandwidth)} and ${seconds(data.cost.latency)} a collective between ` +
      `devices, ${(data.cost.flops / 1e12).toLocaleString('en-US')} TFLOP/s for products, ` +
      `${rate(data.cost.memory)} of memory for the rest. Click a loop to open it.`;
  openStep([{name: 'step', comp: data.entry}]);
  setDark(window.matchMedia('(prefers-color-scheme: dark)').matches);
}
start();
