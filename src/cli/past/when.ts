/** A point in the past as a user writes it (L4): a revision, a time of day, an RFC 3339 time, a duration before now, or now. */
import { parseDuration } from '#api/machinery/duration'
import { parseTime } from '#base/time'
import { CommandError } from '../exitCodes.ts'

/** `newest`: whatever the clocks of the user and of the server say. */
export type When = { readonly type: 'revision'; readonly revision: number } | { readonly type: 'time'; readonly atMs: number } | { readonly type: 'newest' }

const hoursPerDay = 24

/** @throws CommandError usage */
export function parseWhen(text: string, nowMs: number): When {
  if (/^[1-9]\d{0,14}$/.test(text)) return { type: 'revision', revision: Number(text) }
  if (text === 'now') return { type: 'newest' }
  const atMs = timeOf(text, nowMs)
  if (atMs === undefined) {
    throw new CommandError('usage', `${text}: expected a time (14:03, 2026-01-31T14:03:00Z), a duration before now (-10m, -2h30m, -1d) or a revision (12345)`)
  }
  if (atMs > nowMs) throw new CommandError('usage', `${text} is in the future`)
  return { type: 'time', atMs }
}

function timeOf(text: string, nowMs: number): number | undefined {
  if (text.startsWith('-')) {
    const ms = parseDuration(text.slice(1).replace(/^(\d+)d/, (_, days) => `${Number(days) * hoursPerDay}h`))
    return ms === undefined || ms < 0 ? undefined : nowMs - ms
  }
  return timeOfDay(text, nowMs) ?? parseTime(text)
}

/** The last time that the clock on the wall showed this. */
function timeOfDay(text: string, nowMs: number): number | undefined {
  const [, hour, minute, second = '0'] = /^(\d{1,2}):(\d\d)(?::(\d\d))?$/.exec(text) ?? []
  if (hour === undefined || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  const at = new Date(nowMs)
  at.setHours(Number(hour), Number(minute), Number(second), 0)
  if (at.getTime() > nowMs) at.setDate(at.getDate() - 1)
  return at.getTime()
}

/** The words of a command whose points in the past may look like flags: -10m. @throws CommandError usage for any other flag that the command does not know */
export function wordsOf(args: readonly string[]): readonly string[] {
  const unknown = args.find((word) => /^-(?!\d)/.test(word))
  if (unknown !== undefined) throw new CommandError('usage', `unknown option '${unknown}'`)
  return args
}
