import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { restoreThreadPoolSize, withOneThread } from './threadPool.ts'

const cases = [
  { name: 'none', own: {}, want: {} },
  { name: 'one of the user', own: { UV_THREADPOOL_SIZE: '16' }, want: { UV_THREADPOOL_SIZE: '16' } },
]
for (const { name, own, want } of cases) {
  test(`the supervisor has one thread in its pool, and what it starts inherits the size of the user: ${name}`, () => {
    const environment: Record<string, string | undefined> = { ...own, ...withOneThread(own) }
    assert.equal(environment.UV_THREADPOOL_SIZE, '1')
    restoreThreadPoolSize(environment)
    assert.deepEqual(environment, want)
    restoreThreadPoolSize(environment)
    assert.deepEqual(environment, want)
  })
}

test('the pool keeps its size after the variable is restored', { skip: process.platform === 'linux' ? false : 'reads /proc' }, () => {
  const script = `
    const fs = require('node:fs')
    const threads = () => fs.readdirSync('/proc/self/task').length
    const before = threads()
    fs.promises.stat('/').then(async () => {
      delete process.env.UV_THREADPOOL_SIZE
      await Promise.all(Array.from({ length: 64 }, () => fs.promises.stat('/')))
      console.log(threads() - before)
    })`
  const run = (size: string) => spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', env: { ...process.env, UV_THREADPOOL_SIZE: size } }).stdout
  assert.equal(Number(run('3')) - Number(run('1')), 2)
})
