/**
 * Runs other people's clients against Skiff: each folder next to this file is one program with an executable `run`. It starts a simulated cluster per
 * suite and gives the program KUBECONFIG, SKIFF (the command), SKIFF_HOME, CLUSTER (its name) and WORK (a directory for build results). `run check`
 * comes first: an exit code of 77 skips the suite (the last line of output is the reason: a toolchain is missing). Then 0 passes, any other fails.
 *
 *   node --import tsx test/suites/runSuites.ts [--pick NUMBER] [NAME…]
 *   --pick NUMBER   runs one of the suites whose toolchain is there, and fails when there is none; it leaves out those with a heavy build
 */
import { spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { LocalCluster, skiffBin } from '../e2e/support/localCluster.ts'

const here = import.meta.dirname
const skipped = 77
/** A first run downloads and compiles the suite's libraries. */
const timeoutMs = { usual: 1_200_000, heavy: 3_600_000 }
/** The suites whose build from an empty cache takes too long for CI, which does not pick them, and about how many minutes of processor time it takes. */
const heavyBuildMinutes: ReadonlyMap<string, number> = new Map([
  ['cloudnative-pg', 9],
  ['csi-sidecars', 11],
  ['keda', 14],
  ['prometheus-operator', 9],
  ['velero', 8],
])
/** History is compacted every five seconds, so that clients meet expired revisions. */
const clusterFlags = ['--runtime', 'simulated', '--nodes', '0', '--simulated-nodes', '2', '--kube-apiserver-arg', 'etcd-compaction-interval=5s', '-q']

const suites = fs.readdirSync(here).filter((name) => fs.existsSync(path.join(here, name, 'run')))
const chosen = process.argv.slice(2)
const pick = chosen[0] === '--pick' ? Number(chosen.splice(0, 2)[1]) : undefined
const unknown = chosen.find((name) => !suites.includes(name))
if (unknown !== undefined) {
  console.error(`${unknown}: must be one of ${suites.join(', ')}`)
  process.exit(2)
}

if (pick !== undefined && !Number.isSafeInteger(pick)) {
  console.error('--pick: must be a whole number')
  process.exit(2)
}

interface Outcome {
  readonly code: number
  readonly output: string
}

/** The program says whether its toolchain is there. */
function checkSuite(name: string): Outcome {
  const { status, stdout, stderr } = spawnSync('./run', ['check'], { cwd: path.join(here, name), encoding: 'utf8' })
  return { code: status ?? 1, output: `${stdout}${stderr}` }
}

async function runSuite(name: string): Promise<Outcome> {
  const checked = checkSuite(name)
  if (checked.code !== 0) return checked
  const cluster = await LocalCluster.start(`suite-${name}`, clusterFlags)
  try {
    const env = { ...cluster.env, HOME: os.homedir(), SKIFF: skiffBin, CLUSTER: cluster.name, WORK: cluster.dir }
    return await runProgram(path.join(here, name), env, heavyBuildMinutes.has(name) ? timeoutMs.heavy : timeoutMs.usual)
  } finally {
    await cluster.delete()
  }
}

/** In a process group of its own, which ends with it. */
function runProgram(cwd: string, env: NodeJS.ProcessEnv, limitMs: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn('./run', [], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-1_000_000)
      })
    }
    const endGroup = () => {
      try {
        if (child.pid) process.kill(-child.pid, 'SIGKILL')
      } catch {
        // All of the group have ended.
      }
    }
    const timer = setTimeout(() => {
      output += `\ntimed out after ${limitMs} ms\n`
      endGroup()
    }, limitMs)
    child.once('error', (error) => {
      clearTimeout(timer)
      resolve({ code: 1, output: String(error) })
    })
    child.once('close', (code) => {
      clearTimeout(timer)
      endGroup()
      resolve({ code: code ?? 1, output })
    })
  })
}

function notPicked(name: string): Outcome | undefined {
  const minutes = heavyBuildMinutes.get(name)
  return minutes === undefined ? undefined : { code: skipped, output: `is not picked, since its build takes ${minutes} minutes of processor time` }
}

/** Which one depends on the number alone, as long as the machine has the same toolchains. */
function pickOne(names: readonly string[], number: number): string[] {
  const checks = names.map((name) => ({ name, ...(notPicked(name) ?? checkSuite(name)) }))
  const runnable = checks.filter(({ code }) => code === 0).map(({ name }) => name)
  const one = runnable[number % runnable.length]
  if (one !== undefined) return [one]
  for (const { name, output } of checks) console.error(`${name}: ${output.trimEnd().split('\n').at(-1)}`)
  console.error('--pick: no suite can run here')
  process.exit(1)
}

const counts = { passed: 0, failed: 0, skipped: 0 }
const named = chosen.length > 0 ? chosen : suites
for (const name of pick === undefined ? named : pickOne(named, pick)) {
  const startedMs = performance.now()
  const { code, output } = await runSuite(name)
  const result = code === 0 ? 'passed' : code === skipped ? 'skipped' : 'failed'
  counts[result]++
  const lines = output.trimEnd().split('\n')
  console.log(`${result} ${name} in ${((performance.now() - startedMs) / 1000).toFixed(1)} s${result === 'skipped' ? `: ${lines.at(-1)}` : ''}`)
  if (result !== 'skipped') console.log((result === 'failed' ? lines.slice(-200) : lines.slice(-40)).map((line) => `     ${line}`).join('\n'))
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
process.exit(counts.failed > 0 ? 1 : 0)
