/** The text of one explained request, and of what components did about an object (L4, pure). */
import type { ExplainedRequest, ObjectEvent, TraceStage } from '#api/debug/traces'
import { formatTime } from '#base/time'
import { table } from '../commands/status.ts'

export function describeRequest(request: ExplainedRequest): string {
  const { id, user, as, verb, uri, code, atMs, durationMs, revision, watchers } = request
  const facts = [
    ['request:', id],
    ['asked:', `${verb} ${uri}`],
    ['by:', as === undefined ? user : `${user} as ${as}`],
    ['at:', `${formatTime(atMs)}, ${millis(durationMs)} ms`],
    ['answer:', String(code)],
    ...(revision === undefined ? [] : [['stored:', `revision ${revision}${watchers === undefined ? '' : `, passed to ${watchers} watches`}`]]),
  ]
  return [table(facts), stagesOf(request), refusalOf(request)].filter((section) => section !== '').join('\n')
}

function stagesOf({ stages, code }: ExplainedRequest): string {
  if (stages.length === 0) return code >= 400 ? 'The stages were not recorded: no reader asked for them before the request.\n' : ''
  return table([['STAGE', 'MS', 'DECISION', 'RULE'], ...stages.flatMap(rowsOf)])
}

function rowsOf({ stage, decision, rule = '', durationMs, plugins = [] }: TraceStage): string[][] {
  const shown = plugins.filter(({ changes, refused, durationMs: ms }) => changes || refused !== undefined || ms >= slowMs)
  const details = shown.flatMap((plugin) => [
    [`  ${plugin.name}`, millis(plugin.durationMs), plugin.refused === undefined ? (plugin.changes ? 'changed' : 'passed') : 'refused', ''],
    ...(plugin.changes ?? []).map((line) => ['', '', `  ${line}`, '']),
  ])
  return [[stage, millis(durationMs), decision, rule], ...details]
}

/** Plugins that did nothing are left out, unless they took long. */
const slowMs = 1

function refusalOf({ code, message = '', refusedBy, advice = [] }: ExplainedRequest): string {
  if (code < 400) return ''
  const head = `Refused${refusedBy === undefined ? '' : ` by ${refusedBy}`}${message && `: ${message}`}\n`
  return advice.length === 0 ? head : `${head}What would allow it:\n${advice.map((line) => `  ${line}\n`).join('')}`
}

export function describeOthers(requests: readonly ExplainedRequest[]): string {
  if (requests.length === 0) return ''
  const rows = requests.map(({ atMs, user, verb, code, id, object }) => [formatTime(atMs), verb, object?.subresource ?? '', String(code), user, id])
  return `Earlier requests about it:\n${table([['TIME', 'VERB', 'SUBRESOURCE', 'CODE', 'USER', 'ID'], ...rows])}`
}

export function describeEvents(events: readonly ObjectEvent[]): string {
  if (events.length === 0) return ''
  const rows = events.map(({ atMs, component, what, waitedMs, durationMs, result }) => [
    timeOfDay(atMs),
    component,
    what,
    waitedMs === undefined ? '' : millis(waitedMs),
    millis(durationMs),
    result,
  ])
  return `What components did about it:\n${table([['TIME', 'COMPONENT', 'WHAT', 'WAITED MS', 'MS', 'RESULT'], ...rows])}`
}

export function millis(ms: number): string {
  return ms >= 100 ? ms.toFixed(0) : ms >= 1 ? ms.toFixed(1) : ms.toFixed(2)
}

/** With milliseconds, which an RFC 3339 time of the API does not have. */
function timeOfDay(ms: number): string {
  const whole = Math.floor(ms)
  return `${formatTime(whole).slice(11, 19)}.${String(whole % 1000).padStart(3, '0')}`
}
