import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { runCommand as run } from '#testing/commandRun'
import { CommandError } from '../exitCodes.ts'

/** A load file for one test. */
async function inFile<T>(text: string, use: (file: string) => Promise<T>): Promise<T> {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-load-'))
  const file = path.join(directory, 'load.yaml')
  await fs.writeFile(file, text)
  return use(file).finally(() => fs.rm(directory, { recursive: true }))
}

test('ARC-13 a load that needs more memory than the host of a local cluster has is refused before anything is created', async () => {
  const { error, calls, interruptions } = await inFile('deployments: [{ count: 400, replicas: 10-100 }]', (file) => run(['simulate', 'load', file]))
  assert.ok(error instanceof CommandError && error.exit === 'unmetPrerequisite', String(error))
  assert.equal(error.message, '40000 pods need about 1908 MiB, and this host has 1024 MiB of free memory')
  assert.deepEqual([calls, interruptions], [[], []])
})

for (const [what, text] of [
  ['of the wrong kind', 'apiVersion: v1\nkind: Pod\nmetadata: { name: a }'],
  ['with an alias that is repeated without end', `a: &a [${'1,'.repeat(9)}1]\n${'b: [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n'.repeat(2)}`],
  ['with an unknown field', 'deployments: [{ replica: 3 }]'],
  ['that is empty', ''],
  ['of bytes that are no text', '\u0000\u0001\u0002'],
] as const)
  test(`ARC-13 a load file ${what} is refused before anything is created`, async () => {
    const { error, calls, interruptions } = await inFile(text, (file) => run(['simulate', 'load', file]))
    assert.ok(error instanceof CommandError && error.exit === 'usage', String(error))
    assert.match(error.message, /load\.yaml: /)
    assert.deepEqual([calls, interruptions], [[], []])
  })
