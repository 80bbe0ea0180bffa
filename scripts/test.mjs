#!/usr/bin/env node
/**
 * Runs the tests: pure ones many to a process, all others one file to a process, since they start servers. Three processes run at a time, since
 * end-to-end tests mostly wait; at most two of them make real nodes on this host. Tests that measure turns of the event loop run alone at the end. Prints a line per process, the report of each failure, and node's closing
 * lines once for the whole run. Fails when the run left something behind on the host.
 *
 *   node scripts/test.mjs [--only PART] [--again N] [--status FILE] [files…]
 *   --only PART     unit | integration | robustness | architecture | conformance | e2e; several are separated by commas
 *   --again N       runs up to N failed files once more, alone, at the end; a file that passes then is printed as FLAKY, with its first failure
 *                   above: the race needs a fix, but the change that met it need not be refused
 *   --status FILE   also writes the table of feature-map rows that passing tests prove (their names start with the row's ID)
 */
import { execFileSync, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { buildTests, bundleOf } from './testBuild.mjs'
import { sourcePlacesIn } from './testPlaces.mjs'
import { readSeconds, writeSeconds } from './testSeconds.mjs'
import { writeStatus } from './testStatus.mjs'

const root = path.resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..')
process.chdir(root)
// Marks every process of this run, so that the check for remains ignores clusters of other runs and users. Each job adds its own number (run below).
process.env.SKIFF_TEST_RUN = `${process.pid}-${Date.now()}/`
const temporary = makeTemporary()
const args = process.argv.slice(2)
const option = (name) => {
  const at = args.indexOf(name)
  return at < 0 ? undefined : args.splice(at, 2)[1]
}
const parts = ['unit', 'architecture', 'integration', 'robustness', 'conformance', 'e2e']
const statusFile = option('--status')
const only = option('--only')?.split(',') ?? parts
const mostAgain = Number(option('--again') ?? 0)
const reporter = path.join(root, 'scripts/testReporter.mjs')
const hooks = path.join(root, 'scripts/testHooks.cjs')
const workers = 3
const fileTimeoutMs = 600_000
/** How long a process may stay alive after its last test, before it fails. */
const endTimeoutMs = 10_000

/** End-to-end tests that make no real node: their clusters share nothing with others. */
const simulated = [
  'allHealthy',
  'apiserver',
  'apiserverOverEtcd',
  'badStores',
  'bundle',
  'bundlePage',
  'commandMessages',
  'componentsFlags',
  'controlPlanes',
  'dataFormats',
  'encryptionKeyChange',
  'etcdBackup',
  'etcdServe',
  'kubectl',
  'labs',
  'layouts',
  'nodegroup',
  'ownEtcd',
  'pages',
  'prometheus',
  'simulated',
  'timeTravel',
  'transfer',
  'ui',
  'uiChaos',
  'uiClock',
  'uiEmpty',
  'uiHuge',
  'uiInside',
  'uiMany',
  'uiObjects',
  'uiParts',
  'uiRights',
  'uiTasks',
  'uiWhy',
].map((name) => `test/e2e/${name}.test.ts`)

const unknownPart = only.find((part) => !parts.includes(part))
const missingFile = [...args, ...simulated].find((file) => !fs.existsSync(file))
if (unknownPart !== undefined || missingFile !== undefined) {
  console.error(missingFile === undefined ? `--only ${unknownPart}: must be one of ${parts.join(', ')}` : `${missingFile}: there is no such test file`)
  process.exit(2)
}

const find = (dir) =>
  fs.existsSync(dir)
    ? fs
        .readdirSync(dir, { recursive: true })
        .filter((file) => file.endsWith('.test.ts'))
        .map((file) => path.join(dir, file))
        .sort()
    : []
const filesOf = (part) => (part === 'unit' ? [...find('src'), ...find('bench')] : find(path.join('test', part)))
/** Real nodes share the routes, rules and caches of the host. */
const usesHost = (file) =>
  !simulated.includes(file) && (/^test\/(e2e|conformance\/behaviours)\//.test(file) || fs.readFileSync(file, 'utf8').includes('support/localCluster'))

/** Clusters have namespaces, ranges of addresses and directories of their own, so that tests of two of them run at a time. */
const hostLanes = 2
/** These fill the host's memory, disks or processes, or compare what is on the host before and after. */
const needsHostAlone = ({ files }) =>
  files.some(
    (file) => /^test\/(robustness\/(node|attacks|clusterDiskFull)|e2e\/kubeletResources)/.test(file) || fs.readFileSync(file, 'utf8').includes('hostTraces'),
  )

/** Their limits are processor time, which grows while another process uses the same caches and memory. */
const measuresTurns = ({ files }) => files.some((file) => /^test\/robustness\/(budget\/|long|poisoned|slow|wide)/.test(file))

/** Unit tests share two processes, and some files expect places of sources in a stack. In the output of all others the runner names these places. */
const needsSourceMaps = (file) => !file.startsWith('test/') || fs.readFileSync(file, 'utf8').includes('.stack')

function plan() {
  if (args.length > 0) return args.map((file) => ({ part: 'chosen', files: [file], usesHost: usesHost(file) }))
  return only.flatMap((part) => {
    const files = filesOf(part)
    if (part !== 'unit') return files.map((file) => ({ part, files: [file], usesHost: usesHost(file) }))
    const halves = [files.filter((_, i) => i % 2 === 0), files.filter((_, i) => i % 2 === 1)]
    return halves.filter((half) => half.length > 0).map((half) => ({ part, files: half, usesHost: false }))
  })
}

function entryOf(files) {
  const imports = files.map((file) => `await import(${JSON.stringify(path.join(bundles, bundleOf(file)))})`)
  const testEnd = JSON.stringify(path.join(root, 'scripts/testEnd.mjs'))
  return [`import { afterImports, beforeImports } from ${testEnd}`, 'beforeImports()', ...imports, `afterImports(${endTimeoutMs})`].join('\n')
}

const labelOf = ({ part, files }) => (files.length === 1 ? files[0] : `${part} (${files.length} files)`)

let jobs = 0

/** One process; the reporter writes one JSON line per test to a file, and node's readable report to our output when something failed. */
function run(job) {
  const { files } = job
  const results = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-test-')), 'results.jsonl')
  const entry = path.join(path.dirname(results), 'entry.mjs')
  fs.writeFileSync(entry, entryOf(files))
  const started = process.hrtime.bigint()
  return new Promise((resolve) => {
    const child = spawn(
      process.execPath,
      [
        ...['--require', hooks],
        ...(files.some(needsSourceMaps) ? ['--enable-source-maps'] : []),
        `--test-reporter=${reporter}`,
        `--test-reporter-destination=${results}`,
        '--test-reporter=spec',
        '--test-reporter-destination=stdout',
        entry,
      ],
      // Jobs that run at the same time do not take each other's clusters for remains.
      { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NODE_ENV: 'test', SKIFF_TEST_RUN: `${process.env.SKIFF_TEST_RUN}${++jobs}/` } },
    )
    let output = ''
    const keep = (chunk) => {
      output += chunk
      if (output.length > 4_000_000) output = output.slice(-2_000_000)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const timer = setTimeout(() => {
      keep(`\ntimed out after ${fileTimeoutMs} ms\n`)
      child.kill('SIGKILL')
    }, fileTimeoutMs)
    child.on('close', (code) => {
      clearTimeout(timer)
      const lines = fs.existsSync(results)
        ? fs
            .readFileSync(results, 'utf8')
            .split('\n')
            .filter(Boolean)
            .map((line) => JSON.parse(line))
        : []
      fs.rmSync(path.dirname(results), { recursive: true, force: true })
      const seconds = Number(process.hrtime.bigint() - started) / 1e9
      const failed = lines.filter((line) => line.result === 'fail').length
      const label = labelOf(job)
      const broken = code !== 0 || lines.length === 0
      console.log(`${broken ? 'FAIL' : 'ok  '} ${label}: ${lines.length - failed} of ${lines.length} in ${seconds.toFixed(1)} s`)
      // The report's second half repeats the failures alone; a crash has only the first.
      const failures = output.indexOf('✖ failing tests:')
      if (broken) console.log(withSourcePlaces((failures < 0 ? output : output.slice(failures)).slice(-20_000)))
      // A process that was killed has printed no summary.
      for (const line of lines.filter((l) => l.result === 'fail')) console.log(`     failed: ${line.name}`)
      for (const line of lines.filter((l) => l.result === 'skip')) console.log(`     skipped: ${line.name}: ${line.reason}`)
      resolve({ job, label, broken, lines, failed, seconds })
    })
  })
}

/** Each worker takes the longest host job that fits those of the other workers, otherwise the longest of the rest. */
async function runAll(jobs) {
  const known = readSeconds(root)
  const secondsOf = (job) => known[labelOf(job)] ?? 0
  const waiting = jobs.filter((job) => !measuresTurns(job)).sort((one, other) => secondsOf(other) - secondsOf(one))
  const outcomes = []
  const onHost = new Set()
  const fits = (job) => job.usesHost && (onHost.size === 0 || (onHost.size < hostLanes && ![job, ...onHost].some(needsHostAlone)))
  const ended = new EventEmitter()
  const next = async () => {
    for (;;) {
      const host = waiting.findIndex(fits)
      const at = host >= 0 ? host : waiting.findIndex((job) => !job.usesHost)
      const [job] = at < 0 ? [] : waiting.splice(at, 1)
      if (job?.usesHost) onHost.add(job)
      if (job) return job
      if (waiting.length === 0) return undefined
      // Only host jobs are left, and none of them fits now.
      await once(ended, 'job')
    }
  }
  const work = async () => {
    for (let job = await next(); job; job = await next()) {
      outcomes.push(await run(job))
      onHost.delete(job)
      ended.emit('job')
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
  for (const job of jobs.filter(measuresTurns)) outcomes.push(await run(job))
  return outcomes
}

/** Replaces the first outcome by the second, and returns the files that passed only now. More failures than --again allows stand as they are. */
async function runAgain(outcomes) {
  const failed = outcomes.filter((outcome) => outcome.broken)
  if (failed.length === 0 || failed.length > mostAgain) return []
  const passed = []
  for (const first of failed) {
    const second = await run(first.job)
    outcomes[outcomes.indexOf(first)] = second
    if (!second.broken) passed.push(first.label)
  }
  for (const file of passed) console.log(`FLAKY ${file}: failed first, passed alone`)
  return passed
}

/** What clusters could have left on this host. */
const traces = () => JSON.parse(execFileSync(process.execPath, ['--import', 'tsx', 'test/e2e/support/printTraces.ts'], { encoding: 'utf8' }))

/** The traces that appeared during the run. Processes that are still ending have five seconds. */
async function leftBehind(before) {
  const deadline = Date.now() + 5_000
  for (;;) {
    const added = Object.entries(traces()).flatMap(([kind, now]) => {
      const known = [...before[kind]]
      return now.filter((trace) => !(known.includes(trace) && known.splice(known.indexOf(trace), 1))).map((trace) => `${kind}: ${trace}`)
    })
    if (added.length === 0 || Date.now() > deadline) return added
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

/** A directory for the temporary files of this run alone; tsx keeps its cache of transpiled files across runs. */
function makeTemporary() {
  const shared = os.tmpdir()
  const directory = fs.mkdtempSync(path.join(shared, 'sk'))
  const cache = `tsx-${os.userInfo().uid}`
  fs.mkdirSync(path.join(shared, cache), { recursive: true })
  fs.symlinkSync(path.join(shared, cache), path.join(directory, cache))
  process.env.TMPDIR = directory
  return directory
}

const before = traces()
const planned = plan()
const bundles = await buildTests(
  root,
  planned.flatMap(({ files }) => files),
)
process.env.SKIFF_TEST_BUNDLES = bundles
const withSourcePlaces = sourcePlacesIn(root, bundles)
const outcomes = await runAll(planned)
const flaky = await runAgain(outcomes)
const left = await leftBehind(before)
if (left.length > 0) console.log(`FAIL the run left behind on this host:\n${left.map((trace) => `     ${trace}`).join('\n')}`)

const tests = outcomes.flatMap((outcome) => outcome.lines)
const count = (result) => tests.filter((test) => test.result === result).length
const crashed = outcomes.filter((outcome) => outcome.broken && outcome.failed === 0).length
console.log(
  `# tests ${tests.length}\n# pass ${count('pass')}\n# fail ${count('fail') + crashed + (left.length > 0 ? 1 : 0)}\n# skipped ${count('skip')}\n# flaky ${flaky.length}`,
)
writeSeconds(root, outcomes)
if (statusFile) writeStatus(statusFile, tests)
fs.rmSync(temporary, { recursive: true, force: true })
process.exit(outcomes.some((outcome) => outcome.broken) || tests.length === 0 || left.length > 0 ? 1 : 0)
