/** The forms in which the hops of a pod are shown (L4, pure): a waterfall for a terminal, one HTML file without scripts, OpenTelemetry's JSON. */
import { bareMap } from '#base/bareMap'
import { otlpRequest } from '#base/otlp'
import { formatMicroTime } from '#base/time'
import type { Span } from '#base/traceContext'
import type { Hop, PodTrace } from '#trace/hops'
import { table } from '../commands/status.ts'
import { millis } from '../explain/describe.ts'

const barWidth = 28

export function waterfall(trace: PodTrace): string {
  const rows = trace.hops.map((hop, at) => [String(at + 1), hop.name, timeOf(hop.atMs), `+${millis(hop.gapMs)}`, msText(hop), bar(trace, hop), hop.decision])
  const where = trace.node === undefined ? 'no node' : `node ${trace.node}`
  const source = trace.hops.some(({ source }) => source === 'pod') ? '~: by a timestamp of the pod, of whole seconds\n' : ''
  return `Pod ${trace.pod}, ${where}: ${millis(trace.totalMs)} ms\n${table([['', 'HOP', 'AT', 'GAP MS', 'MS', '', 'DECISION'], ...rows])}${source}`
}

function msText({ durationMs, source }: Hop): string {
  return source === 'measured' ? millis(durationMs) : source === 'pod' ? '~' : '-'
}

function timeOf(ms: number): string {
  return formatMicroTime(ms).slice(11, 26)
}

function bar({ startMs, totalMs }: PodTrace, { atMs, durationMs }: Hop): string {
  const scale = totalMs > 0 ? barWidth / totalMs : 0
  const from = Math.min(barWidth - 1, Math.floor((atMs - startMs) * scale))
  const length = Math.max(1, Math.min(barWidth - from, Math.round(durationMs * scale)))
  return `${' '.repeat(from)}${'█'.repeat(length)}`.padEnd(barWidth)
}

/** One file: no script, no address of another server. */
export function toHtml(trace: PodTrace): string {
  const percent = (ms: number) => `${trace.totalMs > 0 ? ((ms / trace.totalMs) * 100).toFixed(3) : 0}%`
  const rows = trace.hops.map(
    (hop, at) =>
      `<tr><td>${at + 1}</td><th scope="row">${escaped(hop.name)}</th><td>${timeOf(hop.atMs)}</td><td>${millis(hop.gapMs)}</td><td>${msText(hop)}</td><td class="bars"><div class="${hop.source}" style="margin-left:${percent(hop.atMs - trace.startMs)};width:${percent(hop.durationMs)}"></div></td><td>${escaped(hop.decision)}</td></tr>`,
  )
  const events = trace.events.map(
    (event) =>
      `<tr><td>${timeOf(event.atMs)}</td><td>${escaped(event.component)}</td><td>${escaped(event.what)}</td><td>${escaped(event.object)}</td><td>${event.waitedMs === undefined ? '' : millis(event.waitedMs)}</td><td>${millis(event.durationMs)}</td><td>${escaped(event.result)}</td></tr>`,
  )
  const title = `Pod ${escaped(trace.pod)}: ${millis(trace.totalMs)} ms in ${trace.hops.length} hops`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title><style>${style}</style></head><body><main>
<h1>${title}</h1><p>${escaped(trace.node ?? 'no node')}, from ${formatMicroTime(trace.startMs)} to ${formatMicroTime(trace.endMs)}</p>
<div class="scroll"><table><thead><tr><th></th><th>Hop</th><th>At</th><th>Gap ms</th><th>ms</th><th class="bars">Time</th><th>Decision</th></tr></thead><tbody>
${rows.join('\n')}
</tbody></table></div>
<h2>What components did</h2><div class="scroll"><table><thead><tr><th>At</th><th>Component</th><th>What</th><th>Object</th><th>Waited ms</th><th>ms</th><th>Result</th></tr></thead><tbody>
${events.join('\n')}
</tbody></table></div></main></body></html>
`
}

const style =
  ':root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid #8884;vertical-align:top}.bars{min-width:16rem}.bars div{height:1rem;min-width:2px;border-radius:2px;background:#2a7ade}.bars div.pod{background:#d58512}.bars div.none{background:#8888}'

const escapes: Readonly<Record<string, string>> = bareMap({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => escapes[char] as string)
}

/** OpenTelemetry's JSON: one span for the whole, one below it for each hop. */
export function toOtlp(trace: PodTrace, traceId: string): object {
  const { pod, node = '', startMs, endMs } = trace
  const common = { traceId, sampled: true, service: 'skiff', kind: 'internal' } as const
  const root: Span = { ...common, spanId: spanId(0), name: `pod ${pod}`, startMs, endMs, attributes: { 'k8s.pod.name': pod, 'k8s.node.name': node } }
  const hops = trace.hops.map(
    ({ name, atMs, durationMs, decision, source }, at): Span => ({
      ...common,
      spanId: spanId(at + 1),
      parentSpanId: root.spanId,
      name,
      startMs: atMs,
      endMs: atMs + durationMs,
      attributes: { 'skiff.decision': decision, 'skiff.source': source },
    }),
  )
  return otlpRequest([root, ...hops], { scope: { name: 'skiff trace' }, id: (hex) => hex })
}

/** An id of all zeros is invalid. */
function spanId(at: number): string {
  return (at + 1).toString(16).padStart(16, '0')
}
