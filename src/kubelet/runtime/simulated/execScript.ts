/**
 * Answers of a simulated container to exec, from an annotation (L3): a JSON object from command line to output and exit code. Reading the other
 * annotations is annotations.ts's work.
 */
import { ownValue } from '#base/bareMap'
import type { SimulatedExec } from './behaviour.ts'

const largestExitCode = 255

/** The answers by command line, its words joined by one space; undefined for a text of another form. */
export function readExecScript(text: string): ((command: readonly string[]) => SimulatedExec | undefined) | undefined {
  const script = parseObject(text)
  if (!script || !Object.values(script).every(isAnswer)) return undefined
  const answers = script as Readonly<Record<string, SimulatedExec>>
  return (command) => ownValue(answers, command.join(' '))
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isAnswer(value: unknown): boolean {
  return isRecord(value) && Object.entries(value).every(([field, member]) => fits(field, member))
}

function fits(field: string, value: unknown): boolean {
  if (field === 'stdout' || field === 'stderr') return typeof value === 'string'
  return field === 'exitCode' && Number.isInteger(value) && (value as number) >= 0 && (value as number) <= largestExitCode
}
