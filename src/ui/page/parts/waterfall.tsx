/** Bars over time (L4): who did what, when it began and how long it took. A request opens into its stages. */
import { useState } from 'preact/hooks'
import type { ExplainedRequest } from '#api/debug/traces'
import { type Bar, type Burst, barsOfStages, burstOf, msText, placeOf, pluginsOf } from '../../model/waterfall.ts'

const mostShown = 300

export function Waterfall({ burst, label }: { readonly burst: Burst; readonly label: string }) {
  const { startMs, endMs, bars } = burst
  return (
    <div class="waterfall">
      <p class="scale">
        <span>{timeText(startMs)}</span>
        <span>{msText(endMs - startMs)}</span>
      </p>
      <ol aria-label={label}>
        {bars.slice(0, mostShown).map((bar) => (
          <BarRow key={bar.id} bar={bar} burst={burst} />
        ))}
      </ol>
      {bars.length > mostShown && <p class="quiet">and {bars.length - mostShown} more</p>}
    </div>
  )
}

function BarRow({ bar, burst }: { readonly bar: Bar; readonly burst: Burst }) {
  const [isOpen, setOpen] = useState(false)
  const { who, what, request } = bar
  const stages = request?.stages ?? []
  return (
    <li>
      {request && (stages.length > 0 || request.advice) ? (
        <button type="button" class="row" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <BarCells bar={bar} burst={burst} />
        </button>
      ) : (
        <div class="row">
          <BarCells bar={bar} burst={burst} />
        </div>
      )}
      {isOpen && request && (
        <div class="opened">
          {stages.length > 0 && <Waterfall burst={burstOf(barsOfStages(request))} label={`Stages of ${what} by ${who}`} />}
          <RequestFacts request={request} />
        </div>
      )}
    </li>
  )
}

/** What the stages do not say: the fields that plugins changed, and what would allow a refused request. */
function RequestFacts({ request }: { readonly request: ExplainedRequest }) {
  const { id, uri, revision, watchers, advice = [] } = request
  return (
    <>
      <p class="quiet">
        <code>{id}</code> {uri}
        {revision !== undefined && `, stored as revision ${revision}`}
        {watchers !== undefined && `, passed to ${watchers} watches`}
      </p>
      {pluginsOf(request).map(({ name, changes = [], refused }) => (
        <div key={name}>
          <strong>{name}</strong> <span class={refused === undefined ? 'quiet' : 'warning'}>{refused ?? 'changed'}</span>
          {changes.length > 0 && <pre>{changes.join('\n')}</pre>}
        </div>
      ))}
      {advice.length > 0 && (
        <>
          <p>What would allow it:</p>
          <pre>{advice.join('\n')}</pre>
        </>
      )}
    </>
  )
}

function BarCells({ bar, burst }: { readonly bar: Bar; readonly burst: Burst }) {
  const { lane, who, what, atMs, durationMs, waitedMs, result, isBad } = bar
  const { left, width } = placeOf(burst, bar)
  return (
    <>
      <span class="who">
        <i class={`color lane-${lane}`} aria-hidden="true" />
        <strong>{who}</strong> <span class="quiet">{what}</span>
      </span>
      <span class="track" title={timeText(atMs)}>
        <i class={isBad ? 'time bad' : `time lane-${lane}`} style={{ left: `${left}%`, width: `${width}%` }} />
      </span>
      <span class="took">{lane === 'quiet' ? '–' : msText(durationMs)}</span>
      <span class={isBad ? 'result warning' : 'result'} title={result}>
        {result}
        {waitedMs !== undefined && <span class="quiet"> after {msText(waitedMs)} in the queue</span>}
      </span>
    </>
  )
}

/** With milliseconds, in the zone of the browser. */
export function timeText(ms: number): string {
  return new Date(ms).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 })
}
