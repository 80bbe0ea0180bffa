/**
 * Timestamps and durations as text and as parts (L1, pure). Zones by name come from the platform's own tables.
 * Upstream: cel-go common/types/timestamp.go, duration.go (v0.26); Go's time.ParseDuration and RFC 3339.
 */
import { bareMap } from '#base/bareMap'
import { civilFromDays, daysFromCivil, formatTime, parseTime } from '#base/time'
import { Duration, EvaluationError, maxInt, minInt, Timestamp } from './values.ts'

const nanosPerSecond = 1_000_000_000n
/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z. */
const minSeconds = -62_135_596_800
const maxSeconds = 253_402_300_799

/** @throws EvaluationError outside of the years 1 to 9999. */
export function timestamp(seconds: number, nanos = 0): Timestamp {
  if (seconds < minSeconds || seconds > maxSeconds) throw new EvaluationError('timestamp overflow')
  return new Timestamp(seconds, nanos)
}

/** @throws EvaluationError beyond 64 bits of nanoseconds. */
export function duration(nanos: bigint): Duration {
  if (nanos < minInt || nanos > maxInt) throw new EvaluationError('duration overflow')
  return new Duration(nanos)
}

/** Undefined when the text is no RFC 3339 time. @throws EvaluationError outside of the years 1 to 9999. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const fraction = /[.,](\d+)/.exec(text)
  const millis = parseTime(fraction ? text.replace(fraction[0], '') : text)
  if (millis === undefined || /[tz]/.test(text)) return undefined
  return timestamp(millis / 1000, fraction ? Number(fraction[1]!.slice(0, 9).padEnd(9, '0')) : 0)
}

export function formatTimestamp({ seconds, nanos }: Timestamp): string {
  const text = formatTime(seconds * 1000)
  return nanos === 0 ? text : `${text.slice(0, -1)}.${String(nanos).padStart(9, '0').replace(/0+$/, '')}Z`
}

const unitNanos: Readonly<Record<string, bigint>> = bareMap({
  ns: 1n,
  us: 1000n,
  µs: 1000n,
  μs: 1000n,
  ms: 1_000_000n,
  s: nanosPerSecond,
  m: 60n * nanosPerSecond,
  h: 3600n * nanosPerSecond,
})
const durationPart = /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/y

/** Go's notation, such as `1h15m30.918s`; undefined for anything else, and for what exceeds 64 bits of nanoseconds. */
export function parseDuration(text: string): Duration | undefined {
  const unsigned = text.replace(/^[+-]/, '')
  if (unsigned === '0') return new Duration(0n)
  if (unsigned === '') return undefined
  let nanos = 0n
  durationPart.lastIndex = 0
  while (durationPart.lastIndex < unsigned.length) {
    const match = durationPart.exec(unsigned)
    if (!match || (match[1] === '' && !match[2])) return undefined
    const unit = unitNanos[match[3]!]!
    // 18 digits say more than any unit can hold: the rest is cut, as Go does.
    const digits = (match[2] ?? '').slice(0, 18)
    nanos += BigInt(match[1] || '0') * unit + (BigInt(digits || '0') * unit) / 10n ** BigInt(digits.length)
  }
  const signed = text.startsWith('-') ? -nanos : nanos
  return signed < minInt || signed > maxInt ? undefined : new Duration(signed)
}

/** In seconds, such as `1.5s`. */
export function formatDuration({ nanos }: Duration): string {
  const positive = nanos < 0n ? -nanos : nanos
  const fraction = String(positive % nanosPerSecond)
    .padStart(9, '0')
    .replace(/0+$/, '')
  return `${nanos < 0n ? '-' : ''}${positive / nanosPerSecond}${fraction === '' ? '' : `.${fraction}`}s`
}

/** @throws EvaluationError on overflow. */
export function addDuration(moment: Timestamp, span: Duration): Timestamp {
  const total = BigInt(moment.nanos) + span.nanos
  const rest = ((total % nanosPerSecond) + nanosPerSecond) % nanosPerSecond
  return timestamp(moment.seconds + Number((total - rest) / nanosPerSecond), Number(rest))
}

/** @throws EvaluationError on overflow. */
export function difference(a: Timestamp, b: Timestamp): Duration {
  return duration(BigInt(a.seconds - b.seconds) * nanosPerSecond + BigInt(a.nanos - b.nanos))
}

/** A timestamp's parts where the clock shows them. Months, days of month and days of year count from 0; Sunday is 0. */
export interface CivilTime {
  readonly year: number
  readonly month: number
  readonly dayOfMonth: number
  readonly dayOfYear: number
  readonly dayOfWeek: number
  readonly hours: number
  readonly minutes: number
  readonly seconds: number
  readonly millis: number
}

/** Reads timestamps in zones: names such as `Europe/Berlin`, or offsets such as `-02:30`. Remembers the last zone, which costs much to set up. */
export function zoneReader(): (moment: Timestamp, zone: string) => CivilTime {
  let last: { zone: string; offset: (moment: Timestamp) => number } | undefined
  return (moment, zone) => {
    if (last?.zone !== zone) last = { zone, offset: zoneOffset(zone) }
    return civilTime(moment, last.offset(moment))
  }
}

/** @param offset of the place from UTC, in seconds. */
export function civilTime(moment: Timestamp, offset = 0): CivilTime {
  const local = moment.seconds + offset
  const day = Math.floor(local / 86_400)
  const second = local - day * 86_400
  const { year, month, day: dayOfMonth } = civilFromDays(day)
  return {
    year,
    month: month - 1,
    dayOfMonth: dayOfMonth - 1,
    dayOfYear: day - daysFromCivil(year, 1, 1),
    dayOfWeek: (((day + 4) % 7) + 7) % 7,
    hours: Math.floor(second / 3600),
    minutes: Math.floor(second / 60) % 60,
    seconds: second % 60,
    millis: Math.floor(moment.nanos / 1_000_000),
  }
}

/** The zone's offset from UTC in seconds, at a moment. @throws EvaluationError for no zone. */
function zoneOffset(zone: string): (moment: Timestamp) => number {
  if (zone === '' || zone === 'UTC') return () => 0
  const fixed = /^([+-]?)(\d+):(\d+)$/.exec(zone)
  if (fixed) {
    const seconds = (fixed[1] === '-' ? -1 : 1) * (Number(fixed[2]) * 60 + Number(fixed[3])) * 60
    return () => seconds
  }
  const format = zoneFormat(zone)
  return (moment) => {
    const parts = Object.fromEntries(format.formatToParts(moment.seconds * 1000).map(({ type, value }) => [type, Number(value)]))
    const days = daysFromCivil(parts.year!, parts.month!, parts.day!)
    return days * 86_400 + parts.hour! * 3600 + parts.minute! * 60 + parts.second! - moment.seconds
  }
}

function zoneFormat(timeZone: string): Intl.DateTimeFormat {
  const unknown = new EvaluationError(`unknown time zone ${timeZone}`)
  // Without a colon an offset would be the platform's own notation, which CEL does not have.
  if (/^[+-\d]/.test(timeZone)) throw unknown
  const numeric = 'numeric'
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'iso8601',
      hourCycle: 'h23',
      year: numeric,
      month: numeric,
      day: numeric,
      hour: numeric,
      minute: numeric,
      second: numeric,
    })
  } catch {
    throw unknown
  }
}
