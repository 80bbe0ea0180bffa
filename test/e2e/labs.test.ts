/** The labs on a simulated cluster: none is done at the start, their own hints solve them, and reset leaves nothing. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { labs } from '#cli/labs/index'
import { LocalCluster, obstacleToCluster } from './support/localCluster.ts'

const skip = obstacleToCluster(false)
const options = { skip }
const name = 'e2e-labs'
let cluster: LocalCluster

before(async () => {
  if (!skip) cluster = await LocalCluster.start(name, ['--runtime', 'simulated', '--simulated-nodes', '3'])
})

after(async () => {
  if (!skip) await cluster?.delete()
})

interface Outcome {
  readonly passed: boolean
  readonly observed: string
}

const lab = (...words: string[]) => cluster.skiff(['lab', ...words, '--name', name])

async function outcomes(number: number): Promise<{ readonly code: number; readonly all: readonly Outcome[] }> {
  const { code, stdout } = await lab('check', String(number), '-o', 'json')
  return { code, all: JSON.parse(stdout) as Outcome[] }
}

test('X20 a lab that is not started has neither checks nor hints', options, async () => {
  const { code, stderr } = await lab('check', '1')
  assert.deepEqual([code, stderr.split('\n')[0]], [3, 'error: lab 1 is not started'])
})

async function solvedByItsHints(number: number): Promise<void> {
  const started = await lab('start', String(number))
  assert.equal(started.code, 0, started.stderr)
  const before = await outcomes(number)
  assert.deepEqual(
    before.all.map(({ passed }) => passed),
    before.all.map(() => false),
    JSON.stringify(before.all),
  )
  assert.equal(before.code, 1)
  const solved = await lab('solve', String(number))
  assert.equal(solved.code, 0, `${solved.stdout}\n${solved.stderr}`)
  assert.equal((await outcomes(number)).code, 0)
}

test('X20 each lab is open after its start, and its own hints solve it', options, async (t) => {
  const waiting = [...labs]
  const atOnce = 4
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const { number, title } = next
        await t.test(`X20 lab ${number}, ${title}`, () => solvedByItsHints(number))
      }
    }),
  )
})

test('X20 the list says what is done', options, async () => {
  const { stdout } = await lab('list')
  assert.deepEqual(
    stdout
      .split('\n')
      .slice(1, -1)
      .map((line) => /\d+ of \d+/.exec(line)?.[0]),
    labs.map(({ tasks }) => `${tasks.length} of ${tasks.length}`),
  )
})

test('X20 a lab that is started again only says what to do: what was done stays', options, async () => {
  for (const number of [4, 8]) {
    assert.equal((await lab('start', String(number))).code, 0)
    assert.equal((await outcomes(number)).code, 0)
  }
})

test('X20 reset removes the namespace and what the lab made outside of it, and the lab can be started again', options, async () => {
  assert.equal((await lab('reset', '3')).code, 0)
  assert.equal(await cluster.must(['get', 'namespaces', '-l', 'skiff.dev/lab=3', '-o', 'name']), '')
  assert.equal(await cluster.must(['get', 'nodes', '-l', 'lab.skiff.dev/disk', '-o', 'name']), '')
  assert.equal((await lab('start', '3')).code, 0)
  assert.deepEqual(
    (await outcomes(3)).all.map(({ passed }) => passed),
    [false, false, false],
  )
})
