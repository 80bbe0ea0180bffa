/** The clock of a cluster under virtual time (L4, pure): what the page offers, and how it says what the clock does. */
import type { ClockState } from '#api/debug/clock'
import { humanDuration } from '#api/machinery/duration'

export const speeds = [1, 10, 60, 600, 3_600] as const

const second = 1_000
export const steps: readonly { readonly title: string; readonly ms: number }[] = [
  { title: '1 second', ms: second },
  { title: '1 minute', ms: 60 * second },
  { title: '10 minutes', ms: 600 * second },
  { title: '1 hour', ms: 3_600 * second },
  { title: '1 day', ms: 86_400 * second },
]

export const isMoving = ({ speed, stepMs }: ClockState): boolean => speed > 0 || stepMs > 0

/** `2026-01-01 00:05:00 UTC` */
export const timeText = ({ now }: ClockState): string => `${now.slice(0, 19).replace('T', ' ')} UTC`

export function motionText({ speed, stepMs, failure }: ClockState): string {
  if (failure !== undefined) return `stopped: ${failure}`
  if (stepMs > 0) return `advances by ${humanDuration(stepMs)}`
  if (speed === 0) return 'stands still'
  return speed === 1 ? 'passes as on the machine' : `passes up to ${speed} times as fast`
}
