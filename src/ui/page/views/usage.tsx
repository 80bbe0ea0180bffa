/** What nodes and pods use over time (L4): charts of what the page has collected since it is open. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { objectPlace } from '../../model/places.ts'
import { type Chart, chartOf, type Measured, measured, peakOf, type UsageSample, usageText } from '../../model/usage.ts'
import { chartColors, openTimeChart, type TimeChart } from '../lazy/timeChart.ts'
import { Empty, Failure, Loading } from '../parts/basics.tsx'
import { isStill } from '../session.ts'
import { kindNamed, namespace, set } from '../state.ts'
import { collected, collectUsage } from '../usage.ts'
import { Autoscalers } from './autoscalers.tsx'

const ranges = [
  { text: '5 minutes', ms: 5 * 60_000 },
  { text: '15 minutes', ms: 15 * 60_000 },
  { text: '1 hour', ms: 3_600_000 },
  { text: 'all', ms: Number.POSITIVE_INFINITY },
] as const
const mostLines = 8
const titles: Readonly<Record<Measured, string>> = { cpu: 'CPU, cores', memory: 'memory' }

export function UsageView() {
  return isStill() ? (
    <section class="usage">
      <Empty title="A bundle has no usage: metrics.k8s.io keeps no past" />
      <Autoscalers />
    </section>
  ) : (
    <Usage />
  )
}

function Usage() {
  useEffect(collectUsage, [])
  const range = useSignal<number>(ranges[0].ms)
  const { nodes, pods, error, isAnswered } = collected
  const last = nodes.value.at(-1) ?? pods.value.at(-1)
  if (!last)
    return (
      <section class="usage">
        <header class="bar">
          <h1>Usage</h1>
        </header>
        {error.value !== '' ? (
          <Failure text={error.value} />
        ) : isAnswered.value ? (
          <Empty title="Nothing is measured yet">The metrics server has no measurement of a node or a pod.</Empty>
        ) : (
          <Loading text="The first measurement…" />
        )}
      </section>
    )
  const sinceMs = last.atMs - range.value
  const ofNamespace = pods.value.map((sample) => within(sample, namespace.value))
  return (
    <section class="usage">
      <header class="bar">
        <h1>Usage</h1>
        <select aria-label="Range" value={String(range.value)} onChange={({ currentTarget }) => set(range, Number(currentTarget.value))}>
          {ranges.map(({ text, ms }) => (
            <option key={text} value={String(ms)}>
              {text}
            </option>
          ))}
        </select>
        <span class="quiet">measured every ten seconds, since this page is open</span>
        {error.value !== '' && <span class="mark reconnecting">{error.value}</span>}
      </header>
      <div class="charts">
        {measured.map((resource) => (
          <ChartCard key={`nodes ${resource}`} title={`Nodes, ${titles[resource]}`} resource={resource} what="nodes" samples={nodes.value} sinceMs={sinceMs} />
        ))}
        {measured.map((resource) => (
          <ChartCard key={`pods ${resource}`} title={`Pods, ${titles[resource]}`} resource={resource} what="pods" samples={ofNamespace} sinceMs={sinceMs} />
        ))}
      </div>
      <Autoscalers />
    </section>
  )
}

function within({ atMs, values }: UsageSample, scope: string): UsageSample {
  return scope === '' ? { atMs, values } : { atMs, values: new Map([...values].filter(([name]) => name.startsWith(`${scope}/`))) }
}

interface ChartCardProps {
  readonly title: string
  readonly resource: Measured
  readonly what: 'nodes' | 'pods'
  readonly samples: readonly UsageSample[]
  readonly sinceMs: number
}

function ChartCard({ title, resource, what, samples, sinceMs }: ChartCardProps) {
  const chart = chartOf(samples, resource, sinceMs, mostLines)
  return (
    <article class="card" aria-label={title}>
      <div class="title">
        <h2>{title}</h2>
      </div>
      {chart.series.length === 0 ? (
        <Empty title="Nothing is measured yet" />
      ) : (
        <>
          <Lines chart={chart} resource={resource} label={`${title}: at most ${usageText(resource, peakOf(chart))}`} />
          <Legend chart={chart} resource={resource} what={what} />
        </>
      )}
    </article>
  )
}

function Lines({ chart, resource, label }: { readonly chart: Chart; readonly resource: Measured; readonly label: string }) {
  const host = useRef<HTMLDivElement>(null)
  const drawn = useRef<TimeChart | undefined>(undefined)
  useEffect(() => {
    if (!host.current) return
    drawn.current = openTimeChart(host.current, chart, (value) => usageText(resource, value))
    return () => drawn.current?.close()
  }, [resource])
  useEffect(() => drawn.current?.update(chart), [chart])
  return <div ref={host} class="lines" role="img" aria-label={label} />
}

function Legend({ chart: { series, left }, resource, what }: { readonly chart: Chart; readonly resource: Measured; readonly what: 'nodes' | 'pods' }) {
  const kind = kindNamed(what)
  return (
    <ul class="legend">
      {series.map(({ name, values }, index) => {
        const [namespaceName = '', podName = ''] = name.split('/')
        const object = what === 'nodes' ? { namespace: '', name } : { namespace: namespaceName, name: podName }
        return (
          <li key={name}>
            <i class="color" style={{ background: chartColors[index % chartColors.length] ?? '' }} aria-hidden="true" />
            {kind ? <a href={objectPlace(kind, object)}>{name}</a> : name}
            <span class="count">{usageText(resource, values.at(-1) ?? 0)}</span>
          </li>
        )
      })}
      {left > 0 && <li class="quiet">and {left} that use less</li>}
    </ul>
  )
}
