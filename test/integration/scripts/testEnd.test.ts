/** scripts/testEnd.mjs in a process of tests of its own, with the reporter that counts them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'

const root = path.resolve(import.meta.dirname, '../../..')
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'test-end-'))
after(() => fs.rmSync(directory, { recursive: true }))

const server = `net.createServer().listen(0, '127.0.0.1', done)`
const slow = 'setTimeout(done, 600)'
const cases = [
  { name: 'a test leaves a server open', body: `test('opens', (_t, done) => { ${server} })`, want: '1 handle open after the last test: TCPServerWrap' },
  {
    name: 'a hook after all tests leaves a server open',
    body: `after((_t, done) => { ${server} }); test('passes', () => {})`,
    want: '1 handle open after the last test: TCPServerWrap',
  },
  { name: 'a test and a hook take longer than the limit', body: `after((_t, done) => { ${slow} }); test('waits', (_t, done) => { ${slow} })`, want: undefined },
  {
    name: 'a suite takes longer than the limit, then a server is open that a hook after all tests closes',
    body: `let opened; after(() => opened.close())
      describe('suite', () => { test('opens', (_t, done) => { opened = ${server} }); test('waits', (_t, done) => { ${slow} }) })`,
    want: undefined,
  },
]
for (const [index, { name, body, want }] of cases.entries()) {
  test(`a process of tests ${want === undefined ? 'ends by itself' : 'is ended and fails'}: ${name}`, () => {
    const [tests, entry, results] = ['tests', 'entry', 'results'].map((file) => path.join(directory, `${file}-${index}.mjs`)) as [string, string, string]
    fs.writeFileSync(tests, `import net from 'node:net'\nimport { after, describe, test } from 'node:test'\n${body}`)
    fs.writeFileSync(
      entry,
      `import { afterImports, beforeImports } from ${JSON.stringify(path.join(root, 'scripts/testEnd.mjs'))}
      beforeImports()
      await import(${JSON.stringify(tests)})
      afterImports(300)`,
    )
    const reporters = [`--test-reporter=${path.join(root, 'scripts/testReporter.mjs')}`, `--test-reporter-destination=${results}`]
    // The runner of this test marks its processes, and a marked process reports to it.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const ended = spawnSync(process.execPath, [...reporters, entry], { env, encoding: 'utf8', timeout: 60_000 })
    assert.deepEqual([ended.status, ended.stderr.trim()], want === undefined ? [0, ''] : [1, want])
    assert.match(fs.readFileSync(results, 'utf8'), /"result":"pass"/)
  })
}
