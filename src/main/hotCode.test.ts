/** Runs on every supported line of Node.js, whose V8 know different flags. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

test('a server that optimizes its code early prints nothing, whatever flags its V8 knows', () => {
  const script = `import { optimizeEarly } from ${JSON.stringify(new URL('./hotCode.ts', import.meta.url).href)}; optimizeEarly()`
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--no-warnings', '--import', 'tsx', '--input-type=module', '-e', script], {
    encoding: 'utf8',
  })
  assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' })
})
