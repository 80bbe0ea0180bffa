/**
 * How the commands of kubectl are written down as tests: a family is a list of steps, a step is one command line and what it must print.
 * Every step is a test of its own, in order, in the namespace of its family. Steps for another release of kubectl are skipped by name.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { before, describe, test } from 'node:test'
import { kubernetesRelease } from '#base/version'
import { eventually, kubectlVersion, type LocalCluster, obstacleToCluster } from '../support/localCluster.ts'

/** A text is the whole output without the space around it; a pattern has to be found in it; of several, each. */
export type Want = string | RegExp | readonly RegExp[]

export interface Step {
  /** The row of the feature map that the step proves alone; all steps together prove EXP-08. */
  readonly row?: string
  /** The arguments of kubectl as a shell would take them, with single quotes; `{name}` stands for what the family remembered by that name. */
  readonly line: string
  /** What the standard output must be; what the standard error must be. */
  readonly out?: Want
  readonly err?: Want
  /** The exit code; default 0. */
  readonly code?: number
  /** Standard input: a text, or objects that are written as one List. */
  readonly input?: string | readonly object[]
  /** The first release of kubectl (1.N) that has the command, the flag or the wording. */
  readonly since?: number
  /** The first release of kubectl (1.N) that has another wording. */
  readonly before?: number
  /** Asks again until the answer is right, for what takes a moment. */
  readonly until?: boolean
  /** Keeps the output under this name for later lines. */
  readonly remember?: string
  readonly env?: Readonly<Record<string, string>>
}

/** One family of commands, in its own namespace; families that need real containers are marked. */
export interface Family {
  readonly name: string
  readonly real?: boolean
  /** Prepares files in the cluster's directory, which is the working directory of every step. */
  readonly prepare?: (cluster: LocalCluster) => Promise<void>
  readonly steps: readonly (Step | Custom)[]
}

/** A step that is more than one command: a stream that is watched while something happens. */
export interface Custom {
  readonly name: string
  readonly commands: readonly string[]
  readonly since?: number
  readonly run: (cluster: LocalCluster, namespace: string) => Promise<void>
}

export const says = (line: string, out: Want, rest: Omit<Step, 'line' | 'out'> = {}): Step => ({ line, out, ...rest })
export const fails = (line: string, err: Want, rest: Omit<Step, 'line' | 'err'> = {}): Step => ({ line, err, code: 1, ...rest })

/** The release that the server reports, for a pattern. */
export const servedRelease = kubernetesRelease.replaceAll('.', '\\.')

const minor = kubectlVersion()?.minor ?? 0

/** Declares the tests of one family; `clusterOf` is asked once the clusters run. */
export function testFamily(family: Family, clusterOf: () => LocalCluster): void {
  const skip = obstacleToCluster(family.real === true)
  const remembered: Record<string, string> = {}
  describe(family.name, { concurrency: 1 }, () => {
    before(async () => {
      if (skip) return
      const cluster = clusterOf()
      await cluster.must(['create', 'namespace', family.name])
      await family.prepare?.(cluster)
    })
    for (const step of family.steps) {
      const [title, run] =
        'line' in step
          ? [[step.row, step.line].filter(Boolean).join(' '), () => runStep(clusterOf(), family.name, step, remembered)]
          : [step.name, () => step.run(clusterOf(), family.name)]
      test(title, { skip: skip || otherRelease(step) }, run)
    }
  })
}

/** Why the step is not for this kubectl; false when it is. */
function otherRelease(step: Step | Custom): string | false {
  const { since = 0 } = step
  const before = 'before' in step ? (step.before ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
  if (minor < since) return `kubectl 1.${minor} is older than 1.${since}`
  return minor >= before ? `kubectl 1.${minor} is not older than 1.${before}` : false
}

/** The first words of all commands that a family's steps use. */
export function commandsOf(family: Family): string[] {
  return family.steps.flatMap((step) => ('line' in step ? [words(step.line)[0] ?? ''] : step.commands))
}

async function runStep(cluster: LocalCluster, namespace: string, step: Step, remembered: Record<string, string>): Promise<void> {
  const line = step.line.replace(/\{(\w+)\}/g, (all, name: string) => remembered[name] ?? all)
  const once = () => run(cluster, namespace, words(line), step)
  const result = step.until ? await eventually(line, 40_000, once, (answer) => faultOf(step, answer) === undefined) : await once()
  const fault = faultOf(step, result)
  assert.ok(fault === undefined, `kubectl ${line}: ${fault}\nexit ${result.code}\n${result.stdout}${result.stderr}`)
  if (step.remember) remembered[step.remember] = result.stdout.trim()
}

interface Result {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs kubectl in the cluster's directory and the family's namespace; ends it after 40 seconds. */
export function run(cluster: LocalCluster, namespace: string, args: readonly string[], step: Pick<Step, 'input' | 'env'> = {}): Promise<Result> {
  const env = { ...cluster.env, ...step.env }
  const child = spawn('kubectl', [...args.slice(0, 1), `--namespace=${namespace}`, ...args.slice(1)], {
    env,
    cwd: cluster.dir,
    timeout: 40_000,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  return new Promise((resolve, reject) => {
    const result = { code: -1, stdout: '', stderr: '' }
    child.stdout.on('data', (chunk) => {
      result.stdout += chunk
    })
    child.stderr.on('data', (chunk) => {
      result.stderr += chunk
    })
    // kubectl may end before it has read what it was given.
    child.stdin.on('error', () => {})
    child.once('error', reject)
    child.once('close', (code) => resolve({ ...result, code: code ?? -1 }))
    child.stdin.end(typeof step.input === 'object' ? listOf(step.input) : (step.input ?? ''))
  })
}

export function listOf(items: readonly object[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}

function faultOf(step: Step, { code, stdout, stderr }: Result): string | undefined {
  if (code !== (step.code ?? 0)) return `the exit code is not ${step.code ?? 0}`
  return missing('standard output', step.out, stdout) ?? missing('standard error', step.err, stderr)
}

function missing(where: string, want: Want | undefined, text: string): string | undefined {
  if (want === undefined) return undefined
  if (typeof want === 'string') return text.trim() === want ? undefined : `the ${where} is not ${JSON.stringify(want)}`
  const absent = (want instanceof RegExp ? [want] : want).find((pattern) => !pattern.test(text))
  return absent && `the ${where} has nothing like ${absent}`
}

/** Splits a line as a shell does, as far as single quotes go. */
export function words(line: string): string[] {
  return (line.match(/(?:[^\s']|'[^']*')+/g) ?? []).map((word) => word.replaceAll("'", ''))
}
