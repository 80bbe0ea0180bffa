/** A chart over time (L4), loaded when it is first shown: uPlot, in the colours of the page. */
import UPlot from 'uplot'

export interface ChartLines {
  /** Milliseconds since the epoch. */
  readonly atMs: readonly number[]
  readonly series: readonly { readonly name: string; readonly values: readonly (number | null)[] }[]
}

export interface TimeChart {
  update(lines: ChartLines): void
  close(): void
}

export const chartColors = ['#0b8f8a', '#c26a00', '#6f5bd6', '#b83280', '#2b77c9', '#5a8a1e', '#8a6d3b', '#7a8794']
const height = 220
/** A chart with one measurement shows the minute before it. */
const leastSeconds = 60

export function openTimeChart(parent: HTMLElement, lines: ChartLines, text: (value: number) => string): TimeChart {
  let names = ''
  let chart: UPlot | undefined
  const draw = (shown: ChartLines) => {
    const data = [shown.atMs.map((ms) => ms / 1000), ...shown.series.map(({ values }) => [...values])] as UPlot.AlignedData
    const nextNames = shown.series.map(({ name }) => name).join(' ')
    if (chart && names === nextNames) {
      chart.setData(data)
      return
    }
    // The lines of a chart are fixed: others need another one.
    names = nextNames
    chart?.destroy()
    chart = new UPlot(optionsFor(parent, shown, text), data, parent)
  }
  const redraw = () => chart?.redraw()
  const system = matchMedia('(prefers-color-scheme: dark)')
  system.addEventListener('change', redraw)
  const chosen = new MutationObserver(redraw)
  chosen.observe(document.documentElement, { attributes: true })
  const observer = new ResizeObserver(() => chart?.setSize({ width: parent.clientWidth, height }))
  draw(lines)
  observer.observe(parent)
  return {
    update: draw,
    close: () => {
      observer.disconnect()
      chosen.disconnect()
      system.removeEventListener('change', redraw)
      chart?.destroy()
    },
  }
}

function optionsFor(parent: HTMLElement, { series }: ChartLines, text: (value: number) => string): UPlot.Options {
  // Asked for at each drawing: the theme may change.
  const [stroke, line] = [() => getComputedStyle(parent).color, () => getComputedStyle(parent).borderTopColor]
  const axis = { stroke, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } }
  return {
    width: parent.clientWidth,
    height,
    legend: { show: false },
    cursor: { points: { show: false } },
    scales: {
      x: { range: (_, least, most) => [Math.min(least, most - leastSeconds), most] },
      y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1e-9)] },
    },
    axes: [axis, { ...axis, size: 70, values: (_, ticks) => ticks.map(text) }],
    series: [{}, ...series.map(({ name }, index) => ({ label: name, stroke: chartColors[index % chartColors.length] ?? '#888', width: 1.5 }))],
  }
}
