// What the uPlot charts share: axes with titles, resizing, and a tooltip.
import uPlot from 'uplot';
import {el, Tooltip} from './dom';
import type {Theme} from './theme';

export interface PlotSpec {
  label: string;  // of the whole chart, for readers that do not see it
  height: number;
  options: Partial<uPlot.Options>;
  data: uPlot.AlignedData;
  // Lines of the tooltip at a place on the x axis; `index` is the nearest row of the data.
  tip: (x: number, index: number) => Node[];
}

export function axis(theme: Theme, title: string, more: uPlot.Axis = {}): uPlot.Axis {
  const font = '12px system-ui, sans-serif';
  return {
    stroke: theme.muted,
    font,
    label: title,
    labelFont: font,
    labelGap: 2,
    labelSize: 18,
    ticks: {show: false},
    grid: {stroke: theme.line, width: 1},
    ...more,
  };
}

// Draws into `host`, as wide as it is inside, and again whenever that changes. Returns how to end
// that.
export function plot(host: HTMLElement, spec: PlotSpec): () => void {
  const frame = el('div', {class: 'plot', role: 'img', 'aria-label': spec.label});
  host.append(frame);
  const tooltip = new Tooltip(frame);
  const move = (chart: uPlot) => {
    const {left, top, idx} = chart.cursor;
    if (left == null || top == null || left < 0 || idx == null) return tooltip.hide();
    const box = chart.over.getBoundingClientRect();
    const origin = frame.getBoundingClientRect();
    tooltip.show(box.left - origin.left + left, box.top - origin.top + top,
                 spec.tip(chart.posToVal(left, 'x'), idx));
  };
  const chart = new uPlot({
    ...spec.options,
    width: Math.max(frame.clientWidth, 100),
    height: spec.height,
    legend: {show: false},
    cursor: {y: false, points: {show: false}, drag: {x: false, y: false, setScale: false}},
    hooks: {setCursor: [move]},
    series: spec.options.series ?? [],
  }, spec.data, frame);
  const observer = new ResizeObserver(() => {
    const width = frame.clientWidth;
    if (width > 0 && width !== chart.width) chart.setSize({width, height: spec.height});
  });
  observer.observe(frame);
  return () => {
    observer.disconnect();
    chart.destroy();
    frame.remove();
  };
}
