/** ETC-19: the API server's own tests, with its objects in a real etcd. They run in a process of their own, which loads the other store first. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { obstacleToEtcd } from '../../support/etcdServer.ts'
import { sourceProgram } from '../../support/sourceProgram.ts'

const skip = obstacleToEtcd()
const root = path.resolve(import.meta.dirname, '../../..')
/** Tests that start servers without naming a store, and whose time is real. */
const files = [
  'dryRun',
  'eviction',
  'http',
  'listSemantics',
  'longLists',
  'nulls',
  'objects',
  'ownership',
  'patch',
  'serviceAddresses',
  'timeTravel',
  '../store/twoServers',
]

for (const name of files) {
  test(`ETC-19 the API server behaves over etcd as over its own store: ${name}`, { skip, timeout: 120_000 }, async () => {
    const program = sourceProgram(path.join(root, `test/integration/api/${name}.test.ts`), [path.join(root, 'test/support/overEtcd.ts')])
    const args = ['--require', path.join(root, 'scripts/testHooks.cjs'), '--test-reporter=tap', ...program]
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    assert.equal(code, 0, output.slice(-4000))
    assert.match(output, /^# pass [1-9]/m)
  })
}
