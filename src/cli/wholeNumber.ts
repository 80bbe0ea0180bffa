/** Numbers of flags (L4). */
import { CommandError } from './exitCodes.ts'

/** @throws CommandError usage */
export function wholeNumber(flag: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < min || value > max) throw new CommandError('usage', `${flag} ${text}: expected a whole number from ${min} to ${max}`)
  return value
}
