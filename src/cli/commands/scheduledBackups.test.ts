/** The flags of scheduled backups, and what status says about them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand as run, running } from '#testing/commandRun'

test('ETC-20 up passes the flags of scheduled backups on', async () => {
  const { calls } = await run(['up', 'b', '--backup-schedule', '0 */6 * * *', '--backup-dir', '/b', '--backup-keep', '5', '--no-kubeconfig'])
  assert.deepEqual(calls, ['up b {"backup":{"schedule":"0 */6 * * *","place":"/b","keep":5}}'])
})

const wrongBackups: readonly (readonly [string, string, RegExp])[] = [
  ['--backup-schedule', '* * *', /expected exactly 5 fields, found 3/],
  ['--backup-keep', '0', /expected a whole number from 1 to 10000/],
  ['--backup-dir', 's3://B/x', /the bucket has no valid name/],
  ['--backup-dir', 's3://bucket/../x', /the prefix may have letters/],
  ['--backup-dir', 's3://bucket?secret=x', /unknown parameter "secret"/],
  ['--backup-dir', 's3://bucket?endpoint=store.example.com', /the endpoint is no URL of a host/],
  ['--backup-dir', 's3://bucket?endpoint=https://store.example.com/path', /the endpoint is no URL of a host/],
  ['--backup-dir', 's3://bucket?endpoint=http://store.example.com', /the endpoint needs https/],
]
for (const [flag, value, reason] of wrongBackups) {
  test(`ETC-20 up ${flag} ${value} is refused with the reason`, async () => {
    const { error } = await run(['up', 'b', flag, value])
    assert.match((error as Error).message, new RegExp(`^${flag} .*${reason.source}`))
  })
}

test('ETC-20 status shows the newest scheduled backup, the next one, and how the last attempt failed', async () => {
  const backups = { schedule: '0 * * * *', place: '/b', nextMs: Date.parse('2026-01-31T15:00:00Z') }
  const last = { name: 'a-12ab-20260131T140000Z.db', bytes: 2 ** 20, atMs: 0 }
  const failure = { atMs: Date.parse('2026-01-31T14:03:00Z'), reason: 'the disk\u001b is full' }
  const { stdout } = await run(['status'], { status: async () => ({ ...running, backups: { ...backups, last, failure } }) })
  assert.match(stdout, /^backups: {3}"0 \* \* \* \*" to \/b, newest a-12ab-20260131T140000Z\.db, 1\.0 MiB, next 2026-01-31T15:00:00Z$/m)
  assert.match(stdout, /^The backup of 2026-01-31T14:03:00Z failed: the disk\S* is full$/m)
  assert.ok(!stdout.includes('\u001b'))
  assert.match((await run(['status'], { status: async () => ({ ...running, backups }) })).stdout, /, none yet, next /)
})
