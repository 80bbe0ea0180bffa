/**
 * Durations (L1): as tables print ages, and as Go writes them in fields such as metav1.Duration.
 * Upstream: apimachinery/pkg/util/duration, Go's time.ParseDuration and Duration.String.
 */
import { bareMap } from '#base/bareMap'

/** The age text of `kubectl get`: two or three significant figures. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (hours < 192) return pair(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.floor(days / 365)
  return years < 8 ? pair(years, 'y', days % 365, 'd') : `${years}y`
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`
}

const unitMs: Readonly<Record<string, number>> = bareMap({ ns: 1e-6, us: 1e-3, µs: 1e-3, μs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 })

/** Milliseconds of Go's notation (`1h30m`, `1.5s`, `0`); undefined when it is none. */
export function parseDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1
  const body = text.replace(/^[+-]/, '')
  if (body === '0') return 0
  if (!/^((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$/.test(body)) return undefined
  let ms = 0
  for (const [, amount, unit] of body.matchAll(/([\d.]+)(ns|us|µs|μs|ms|s|m|h)/g)) ms += Number(amount) * (unitMs[unit as string] as number)
  return sign * ms
}

/** Go's notation of a duration: `1m30s`, `1.5s`, `250ms`, `0s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0s'
  const sign = ms < 0 ? '-' : ''
  const size = Math.abs(ms)
  if (size < 1000) return size < 1e-3 ? `${sign}${Math.round(size * 1e6)}ns` : size < 1 ? `${sign}${round(size * 1e3)}µs` : `${sign}${round(size)}ms`
  const hours = Math.floor(size / 3_600_000)
  const minutes = Math.floor(size / 60_000) % 60
  const seconds = round((size % 60_000) / 1000)
  return `${sign}${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds}s`
}

function round(value: number): number {
  return Number(value.toFixed(9))
}
