/**
 * Runs the benchmarks: `make bench`, or `node --import tsx bench/run.ts [--json FILE] [scenario…]`. Needs only a built checkout. Prints what
 * the machine is, then one table; the numbers are also written as JSON when asked. A run takes twenty-five minutes at most.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import type { Measurement, Scenario } from './scenario.ts'
import { scenarios } from './scenarios/index.ts'
import { machineFacts } from './tools/machine.ts'
import { median, rounded } from './tools/statistics.ts'

const runMs = 1_500_000
/** Above this load other programs are running, and the figures are less reliable. */
const quietLoad = 1.5

interface Outcome {
  readonly scenario: string
  readonly about: string
  readonly seconds: number
  readonly measurements: readonly Measurement[]
  readonly skipped?: string | undefined
  readonly failed?: string | undefined
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'string' } } })
const chosen = positionals.length > 0 ? scenarios.filter(({ name }) => positionals.includes(name)) : scenarios
const unknown = positionals.filter((name) => !scenarios.some((scenario) => scenario.name === name))
if (unknown.length > 0) {
  console.error(`no scenario ${unknown.join(', ')}; there are ${scenarios.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}
process.exit(await main())

async function main(): Promise<number> {
  const machine = machineFacts()
  console.log(
    Object.entries(machine)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
  )
  if (machine.loadAverage > quietLoad) console.log('The machine is busy with other work: expect worse numbers and wide ranges.')
  const dir = mkdtempSync(path.join(os.tmpdir(), 'skiff-bench-'))
  const stopping = new AbortController()
  process.once('SIGINT', () => stopping.abort(new Error('interrupted')))
  const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(runMs)])
  const outcomes: Outcome[] = []
  try {
    for (const scenario of chosen) {
      const outcome = await runOne(scenario, dir, signal)
      outcomes.push(outcome)
      console.log(`\n${report(outcome)}`)
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
  if (values.json) writeFileSync(values.json, `${JSON.stringify({ machine, outcomes }, null, 2)}\n`)
  return outcomes.some(({ failed }) => failed) ? 1 : 0
}

async function runOne(scenario: Scenario, dir: string, signal: AbortSignal): Promise<Outcome> {
  const { name, about } = scenario
  const started = performance.now()
  const finished = (rest: Partial<Outcome>): Outcome => ({
    scenario: name,
    about,
    seconds: (performance.now() - started) / 1000,
    measurements: [],
    ...rest,
  })
  const skipped = scenario.skipped?.()
  if (skipped) return finished({ skipped })
  try {
    return finished({ measurements: await scenario.run({ dir, signal, progress: (text) => console.error(`  ${name}: ${text}`) }) })
  } catch (error) {
    return finished({ failed: (error as Error).stack ?? String(error) })
  }
}

function report({ scenario, about, seconds, measurements, skipped, failed }: Outcome): string {
  const title = `${scenario}: ${about} (${seconds.toFixed(1)} s)`
  if (skipped) return `${title}\n  skipped: ${skipped}`
  if (failed) return `${title}\n  failed: ${failed}`
  return [title, ...table([['', 'median', 'range', 'target', ''], ...measurements.map(row)])].join('\n')
}

function row({ what, unit, values: all, target, note }: Measurement): string[] {
  const range = all.length > 1 ? `${rounded(Math.min(...all))} – ${rounded(Math.max(...all))} (${all.length})` : ''
  return [what, `${rounded(median(all))} ${unit}`, range, targetText(median(all), target), note ?? '']
}

function targetText(value: number, target: Measurement['target']): string {
  if (!target) return ''
  const { atMost, atLeast } = target
  const isMet = value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? Number.NEGATIVE_INFINITY)
  return `${atMost !== undefined ? `≤ ${atMost}` : `≥ ${atLeast}`} ${isMet ? 'met' : 'MISSED'}`
}

function table(rows: readonly string[][]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)))
  return rows.map((cells) => `  ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')}`.trimEnd())
}
