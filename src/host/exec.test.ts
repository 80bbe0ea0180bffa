import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check, createExec, ExecError } from './exec.ts'

const exec = createExec()

test('run captures both outputs and the exit code', async () => {
  assert.deepEqual(await exec.run('sh', ['-c', 'cat; echo oops >&2; exit 3'], { input: 'in' }), { code: 3, stdout: 'in', stderr: 'oops\n', timedOut: false })
})

test('a missing program is a result, not a crash', async () => {
  assert.equal((await exec.run('/no/such/program', [])).code, -1)
})

test('a program that overstays its time is killed', async () => {
  const result = await exec.run('sleep', ['30'], { timeoutMs: 20 })
  assert.deepEqual([result.code, result.timedOut], [137, true])
})

test('a program that says too much is killed, and what it said until then is kept', async () => {
  const { stdout, code } = await exec.run('sh', ['-c', 'while :; do echo yes; done'], { maxOutputBytes: 10_000 })
  assert.deepEqual([stdout.length, code], [10_000, 137])
})

test('check names the program and what it said', async () => {
  await assert.rejects(check(exec, 'sh', ['-c', 'echo no >&2; exit 1']), (error) => error instanceof ExecError && error.message.endsWith('exit 1: no'))
})

test('a prefix runs every command elsewhere', async () => {
  assert.equal(await check(createExec(['env', 'WHERE=there']), 'sh', ['-c', 'printf $WHERE']), 'there')
})
