/** Two processes of the host path driver over one directory. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { runCsiHostPath } from '#main/layouts/csiHostPath/csiHostPath'
import { until } from '../../support/until.ts'

const root = mkdtempSync(path.join(os.tmpdir(), 'csi-'))
after(() => rmSync(root, { recursive: true }))

test('STO-08 a second driver on the directory of one that runs is refused, and removes nothing; after the end of the first it starts', async () => {
  const directory = path.join(root, 'state')
  const start = (name: string) => {
    const stopping = new AbortController()
    const socket = path.join(root, name)
    const args = ['--endpoint', `unix://${socket}`, '--node-id', 'n', '--state-dir', directory, '--v', '0']
    return { socket, ended: runCsiHostPath(args, stopping.signal), stop: () => stopping.abort() }
  }
  const first = start('a.sock')
  await until('the first driver serves', () => existsSync(first.socket))
  // As of a volume that the first driver is copying.
  const unfinished = path.join(directory, 'content', 'vol-00000000-0000-0000-0000-000000000000')
  mkdirSync(unfinished)
  const second = start('b.sock')
  let code: number | undefined
  const ended = second.ended.then((found) => {
    code = found
  })
  await until('the second driver ends or serves', () => code !== undefined || existsSync(second.socket))
  second.stop()
  await ended
  assert.ok(!existsSync(second.socket) && code !== 0, `exit code ${code}`)
  assert.ok(existsSync(unfinished))
  first.stop()
  assert.equal(await first.ended, 0)
  const third = start('c.sock')
  await until('the third driver serves', () => existsSync(third.socket))
  assert.ok(!existsSync(unfinished))
  third.stop()
  assert.equal(await third.ended, 0)
})
