/** scripts/testHooks.cjs in a process of tests of its own: suites own their tests, errors without a catch fail the test that started last, and no promise has a hook. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'

const root = path.resolve(import.meta.dirname, '../../..')
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'test-hooks-'))
after(() => fs.rmSync(directory, { recursive: true }))

interface Ended {
  readonly status: number | null
  readonly output: string
}

function runTests(body: string): Ended {
  const file = path.join(directory, 'tests.mjs')
  fs.writeFileSync(file, `import { describe, test } from 'node:test'\nimport { setTimeout as delay } from 'node:timers/promises'\n${body}`)
  // The runner of this test marks its processes, and a marked process reports to it.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { status, stdout } = spawnSync(process.execPath, ['--require', path.join(root, 'scripts/testHooks.cjs'), '--test-reporter=tap', file], {
    env,
    encoding: 'utf8',
    timeout: 60_000,
  })
  return { status, output: stdout }
}

test('a suite owns the tests that it declares', () => {
  const { status, output } = runTests(`describe('suite', () => { describe('inner', () => { test('deep', async () => { await 1 }) }) })`)
  assert.equal(status, 0, output)
  assert.match(output, /^ {8}ok 1 - deep$/m)
})

const errors = [
  { what: 'a promise that nothing awaits is rejected', code: `Promise.reject(new Error('lost'))` },
  { what: 'a callback throws', code: `setImmediate(() => { throw new Error('lost') })` },
]
for (const { what, code } of errors) {
  test(`${what}: the test that started last fails with the error, and the process too`, () => {
    const { status, output } = runTests(`test('before', () => {})\ntest('guilty', async () => { ${code}; await delay(300) })\ntest('behind', () => {})`)
    assert.equal(status, 1, output)
    assert.match(output, /^ok 1 - before$[\s\S]*^not ok 2 - guilty$[\s\S]*error: 'lost'[\s\S]*^ok 3 - behind$/m)
  })
  test(`${what} before any test is declared: the process fails`, () => {
    assert.notEqual(runTests(`${code}\nawait delay(300)\ntest('later', () => {})`).status, 0)
  })
}

test('a promise of a test has no hook: what runs after it has no asynchronous resource', () => {
  const body = `import { executionAsyncId } from 'node:async_hooks'
    test('ids', async () => { await 1; console.log('id', executionAsyncId()) })`
  assert.match(runTests(body).output, /id 0/)
})
