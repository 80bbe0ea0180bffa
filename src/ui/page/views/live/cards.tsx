/** Charts and rankings below the map (L4). */
import { Sparkline } from '../../parts/sparkline.tsx'
import { keptReadings } from './readings.ts'

export const rounded = (value: number) => (value >= 100 ? value.toFixed(0) : value.toFixed(1))

interface ChartProps {
  readonly title: string
  readonly values: readonly number[]
  readonly rows: readonly (readonly [string, number])[]
  readonly head: string
}

export function Chart({ title, values, rows, head }: ChartProps) {
  const last = values.at(-1)
  return (
    <article class="card" aria-label={title}>
      <div class="title">
        <h2>{title}</h2>
        <span class="total">{last === undefined ? '' : rounded(last)}</span>
      </div>
      {last !== undefined && (
        <Sparkline values={values} most={keptReadings} label={`${title}: ${rounded(last)} now, at most ${rounded(Math.max(0, ...values))} in two minutes`} />
      )}
      <p class="quiet">{head}</p>
      <Pairs rows={rows} />
    </article>
  )
}

export function Ranking({
  title,
  rows,
  empty = 'none',
}: {
  readonly title: string
  readonly rows: readonly (readonly [string, number])[]
  readonly empty?: string
}) {
  const shown = rows.filter(([, value]) => value > 0)
  return (
    <article class="card" aria-label={title}>
      <div class="title">
        <h2>{title}</h2>
        <span class="total">{shown.reduce((sum, [, value]) => sum + value, 0)}</span>
      </div>
      {shown.length === 0 ? <p class="quiet">{empty}</p> : <Pairs rows={shown.slice(0, 8)} />}
    </article>
  )
}

function Pairs({ rows }: { readonly rows: readonly (readonly [string, number])[] }) {
  return (
    <dl class="pairs">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name || 'other'}</dt>
          <dd>{value.toLocaleString('en')}</dd>
        </div>
      ))}
    </dl>
  )
}
