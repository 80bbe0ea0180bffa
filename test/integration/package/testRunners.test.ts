/** skiff-kubernetes/testing in the test runners that docs/testing.md names, as ES module and as CommonJS, from the packed package. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type InstalledPackage, installPackage } from '../../support/packedPackage.ts'

const root = path.resolve(import.meta.dirname, '../../..')
let project: InstalledPackage
before(() => {
  project = installPackage({ withTools: true })
})
after(() => project.remove())

const jestBlock = () =>
  /```js jest\n([\s\S]*?)```/.exec(fs.readFileSync(path.join(root, 'docs/testing.md'), 'utf8'))?.[1] ?? assert.fail('docs/testing.md has a Jest test')

const imports = `
import { isStatus, pods } from 'skiff-kubernetes/client'
import { startCluster } from 'skiff-kubernetes/testing'
`
const requires = `
const { isStatus, pods } = require('skiff-kubernetes/client')
const { startCluster } = require('skiff-kubernetes/testing')
`
/** Reads, writes, waits and is refused; bytes and errors cross from Node's realm to the one of the test runner. */
const body = `
test('a pod starts, and a second one of its name is refused', async () => {
  const cluster = await startCluster({ nodes: 1 })
  try {
    const ref = { namespace: 'default', name: 'web' }
    const pod = { metadata: ref, spec: { containers: [{ name: 'main', image: 'example.com/web:1' }] } }
    await cluster.client.of(pods).create(pod)
    await cluster.until(async () => (await cluster.client.of(pods).get(ref)).status?.phase === 'Running')
    const refused = await cluster.client.of(pods).create(pod).then(() => undefined, (error) => error)
    if (!isStatus(refused, 'AlreadyExists')) throw new Error('the second pod was created: ' + refused)
    await cluster.clock.advance(3_600_000)
  } finally {
    await cluster.close()
  }
})
test('a check that does not hold fails', async () => {
  const cluster = await startCluster({ nodes: 0 })
  try {
    let error
    await cluster.until(async () => false, 1000).catch((caught) => (error = caught))
    if (!/not within 1000 ms/.test(String(error))) throw error ?? new Error('until returned')
  } finally {
    await cluster.close()
  }
})
`

const fakeTimers = "beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate'] }))\n"

interface Runner {
  readonly name: string
  readonly files: Readonly<Record<string, string | (() => string)>>
  readonly command: readonly string[]
  readonly options?: string
  /** How the runner reports that all tests passed. */
  readonly passed: RegExp
}

const jest = 'node_modules/jest/bin/jest.js'
const inJest = (match: string) => [jest, '--ci', '--rootDir=.', '--watchman=false', '--testTimeout=60000', `--testMatch=**/${match}`]
const runners: readonly Runner[] = [
  {
    name: 'node:test, ES module',
    files: { 'node/a.test.mjs': `import { test } from 'node:test'\n${imports}${body}` },
    command: ['--test', 'node/a.test.mjs'],
    passed: /pass 2\n/,
  },
  {
    name: 'node:test, CommonJS',
    files: { 'node/a.test.cjs': `const { test } = require('node:test')\n${requires}${body}` },
    command: ['--test', 'node/a.test.cjs'],
    passed: /pass 2\n/,
  },
  {
    name: 'Vitest',
    files: { 'vitest/a.test.mjs': `import { test } from 'vitest'\n${imports}${body}` },
    command: ['node_modules/vitest/vitest.mjs', 'run', '--root=vitest', '--testTimeout=60000'],
    passed: /Tests {2}2 passed/,
  },
  {
    name: 'Jest, CommonJS',
    files: { 'jest/a.test.cjs': requires + body, 'jest/b.test.cjs': jestBlock, 'jest/c.test.cjs': requires + fakeTimers + body },
    command: inJest('jest/*.cjs'),
    passed: /Tests: +5 passed/,
  },
  {
    name: 'Jest, import compiled by Babel to CommonJS',
    files: { 'babel/a.test.js': imports + body, 'babel/babel.config.json': '{ "plugins": ["@babel/plugin-transform-modules-commonjs"] }' },
    command: [jest, '--ci', '--rootDir=babel', '--watchman=false', '--testTimeout=60000'],
    passed: /Tests: +2 passed/,
  },
  {
    name: 'Jest, ES module',
    files: { 'jest/a.test.mjs': imports + body },
    command: [...inJest('jest/*.mjs'), '--transform={}'],
    options: '--experimental-vm-modules',
    passed: /Tests: +2 passed/,
  },
]

for (const { name, files, command, options, passed } of runners) {
  test(`X2 ${name}: the cluster of the published package works`, { timeout: 120_000 }, async () => {
    for (const [file, content] of Object.entries(files)) project.write(file, typeof content === 'string' ? content : content())
    const { PATH, TMPDIR } = process.env
    const env = { PATH, TMPDIR, HOME: project.folder, CI: 'true', NO_COLOR: '1', ...(options === undefined ? {} : { NODE_OPTIONS: options }) }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [...command], { cwd: project.folder, env, maxBuffer: 2 ** 24 })
    assert.match(stdout + stderr, passed)
  })
}
