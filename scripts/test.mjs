#!/usr/bin/env node
/**
 * Runs the tests: pure ones many to a process, the others (test/integration, e2e, robustness, architecture) one process each, because they
 * start servers. Prints node's closing lines once for the whole run, and fails when the run left something behind on the host.
 *
 *   node scripts/test.mjs [--status FILE] [--only PART] [files…]      PART: unit | integration | robustness | architecture | conformance | e2e
 *   --status FILE   also writes the table of feature-map rows that passing tests prove (their names start with the row's ID)
 *   --again N       up to N files that failed are run once more, alone, at the end; one that passes then is named as flaky, with its first
 *                   failure printed above: a race to be mended, but no reason to lose the change that it was found in
 */
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

const root = path.resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '..')
process.chdir(root)
// Marks every process of this run, so that clusters that somebody else runs beside it are told apart.
process.env.SKIFF_TEST_RUN = `${process.pid}-${Date.now()}`
const args = process.argv.slice(2)
const option = (name) => {
  const at = args.indexOf(name)
  return at < 0 ? undefined : args.splice(at, 2)[1]
}
const statusFile = option('--status')
const only = option('--only')
const mostAgain = Number(option('--again') ?? 0)
const reporter = path.join(root, 'scripts/testReporter.mjs')

const find = (dir) =>
  fs.existsSync(dir)
    ? fs
        .readdirSync(dir, { recursive: true })
        .filter((f) => f.endsWith('.test.ts'))
        .map((f) => path.join(dir, f))
        .sort()
    : []
const parts = ['architecture', 'unit', 'integration', 'robustness', 'conformance', 'e2e']
const filesOf = (part) => (part === 'unit' ? [...find('src'), ...find('bench')] : find(path.join('test', part)))

/** Pure tests share processes: two of them, filled in turn. */
function plan() {
  if (args.length > 0) return args.map((file) => ({ part: 'chosen', files: [file] }))
  return parts
    .filter((part) => !only || part === only)
    .flatMap((part) => {
      const files = filesOf(part)
      if (part !== 'unit') return files.map((file) => ({ part, files: [file] }))
      const halves = [files.filter((_, i) => i % 2 === 0), files.filter((_, i) => i % 2 === 1)]
      return halves.filter((half) => half.length > 0).map((half) => ({ part, files: half }))
    })
}

/** One process; the reporter writes one JSON line per test to a file, and node's readable report to our output when something failed. */
function run({ part, files }) {
  const results = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-test-')), 'results.jsonl')
  const entry = path.join(path.dirname(results), 'entry.mjs')
  fs.writeFileSync(entry, files.map((file) => `await import(${JSON.stringify(path.join(root, file))})`).join('\n'))
  const started = process.hrtime.bigint()
  return new Promise((resolve) => {
    const timeoutMs = part === 'e2e' ? 600_000 : 300_000
    const child = spawn(
      process.execPath,
      [
        '--import',
        'tsx',
        `--test-reporter=${reporter}`,
        `--test-reporter-destination=${results}`,
        '--test-reporter=spec',
        '--test-reporter-destination=stdout',
        entry,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NODE_ENV: 'test' } },
    )
    let output = ''
    const keep = (chunk) => {
      output += chunk
      if (output.length > 4_000_000) output = output.slice(-2_000_000)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const timer = setTimeout(() => {
      keep(`\ntimed out after ${timeoutMs} ms\n`)
      child.kill('SIGKILL')
    }, timeoutMs)
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
      const ms = Number(process.hrtime.bigint() - started) / 1e6
      const failed = lines.filter((line) => line.result === 'fail').length
      const label = files.length === 1 ? files[0] : `${part} (${files.length} files)`
      const broken = code !== 0 || lines.length === 0
      console.log(`${broken ? 'FAIL' : 'ok  '} ${label}: ${lines.length - failed} of ${lines.length} in ${(ms / 1000).toFixed(1)} s`)
      // The report's second half repeats the failures alone; a crash has only the first.
      const failures = output.indexOf('✖ failing tests:')
      if (broken) console.log((failures < 0 ? output : output.slice(failures)).slice(-20_000))
      for (const line of lines.filter((l) => l.result === 'skip')) console.log(`     skipped: ${line.name}: ${line.reason}`)
      resolve({ job: { part, files }, label, broken, lines, failed })
    })
  })
}

/** Puts the second outcome in the place of the first; the files that passed only now. More failures than --again allows are no bad luck. */
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

/** What is there now and was not before, as often as it is there more often; processes that are just leaving have five seconds. */
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

const before = traces()
const jobs = plan()
const pure = jobs.filter((job) => job.part === 'unit')
const serial = jobs.filter((job) => job.part !== 'unit')
const outcomes = await Promise.all(pure.map(run))
for (const job of serial) outcomes.push(await run(job))
const flaky = await runAgain(outcomes)
const left = await leftBehind(before)
if (left.length > 0) console.log(`FAIL the run left behind on this host:\n${left.map((trace) => `     ${trace}`).join('\n')}`)

const tests = outcomes.flatMap((outcome) => outcome.lines)
const count = (result) => tests.filter((test) => test.result === result).length
const crashed = outcomes.filter((outcome) => outcome.broken && outcome.failed === 0).length
console.log(
  `# tests ${tests.length}\n# pass ${count('pass')}\n# fail ${count('fail') + crashed + (left.length > 0 ? 1 : 0)}\n# skipped ${count('skip')}\n# flaky ${flaky.length}`,
)
if (statusFile) writeStatus(statusFile, tests)
process.exit(outcomes.some((outcome) => outcome.broken) || tests.length === 0 || left.length > 0 ? 1 : 0)

/** The table of rows: each row named by a passing test, nothing else. */
function writeStatus(file, all) {
  const rows = new Map()
  for (const test of all) {
    for (const id of test.name.match(
      /\b(?:ARC|ETC|API|AUN|AUZ|ADM|CRD|CTL|CGO|SCH|KUB|CRI|NET|SVC|ING|NPO|MSH|STO|RES|AUT|HA|OBS|SDR|LRN|DRA|EXP)-\d+\b|\bX\d{1,2}\b/g,
    ) ?? []) {
      const row = rows.get(id) ?? { pass: [], other: [] }
      rows.set(id, row)
      ;(test.result === 'pass' ? row.pass : row.other).push(test)
    }
  }
  const sorted = [...rows].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
  const lines = sorted.map(([id, row]) => {
    const state = row.other.some((t) => t.result === 'fail') ? 'failing' : row.pass.length > 0 ? 'passing' : 'skipped here'
    const names = [...row.pass, ...row.other].map((t) => t.name.replace(/\|/g, '\\|')).slice(0, 6)
    const more = row.pass.length + row.other.length - names.length
    return `| ${id} | ${state} | ${row.pass.length} | ${names.join('<br>')}${more > 0 ? `<br>and ${more} more` : ''} |`
  })
  const text = `# Status\n\nWritten by \`make status\` from a test run; no row is listed by hand. A row is here because a test named after it ran.\n\n${behaviourCounts(all)}\n\n| row | state | passing tests | tests |\n|---|---|---|---|\n${lines.join('\n')}\n`
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
  console.log(`${rows.size} rows written to ${file}`)
}

/** How many of upstream's conformance behaviours that need containers were shown; their tests are marked [K]. */
function behaviourCounts(all) {
  const behaviours = all.filter((test) => test.name.includes(' [K] sig-'))
  const count = (result) => behaviours.filter((test) => test.result === result).length
  return `Of upstream's 249 conformance behaviours that need containers ${behaviours.length} are tests here: ${count('pass')} passed, ${count('fail')} failed, ${count('skip')} cannot be done on this machine (the run says why).`
}
