import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { backupPlanOf } from './backupSettings.ts'

let directory = ''
before(async () => {
  directory = await mkdtemp(path.join(os.tmpdir(), 'skiff-backup-settings-'))
})
after(() => rm(directory, { recursive: true }))

test('ETC-20 a cluster keeps the plan that up asked for, and a later up changes only what it names', async () => {
  const made = await backupPlanOf(undefined, { schedule: '0 * * * *', place: directory }, 1)
  assert.deepEqual(made, { schedule: '0 * * * *', place: directory, keep: 10, sinceMs: 1 })
  assert.deepEqual(await backupPlanOf(made, { keep: 3 }, 2), { schedule: '0 * * * *', place: directory, keep: 3, sinceMs: 1 })
  assert.deepEqual(await backupPlanOf(made, { schedule: '5 * * * *' }, 2), { schedule: '5 * * * *', place: directory, keep: 10, sinceMs: 2 })
  assert.equal(await backupPlanOf(made, undefined, 2), made)
  assert.equal(await backupPlanOf(made, { schedule: 'off' }, 2), undefined)
})

test('ETC-20 a plan without a schedule, a place, an existing directory or keys for its bucket is refused', async () => {
  const refused = (options: Parameters<typeof backupPlanOf>[1], error: RegExp) => assert.rejects(backupPlanOf(undefined, options, 1), error)
  const schedule = '0 * * * *'
  const credentials = path.join(directory, 'credentials')
  await refused({ place: directory }, /--backup-schedule is missing/)
  await refused({ schedule }, /--backup-dir is missing/)
  await refused({ schedule, place: path.join(directory, 'missing') }, /is no directory/)
  await refused({ schedule, place: 's3://backups' }, /needs --backup-credentials/)
  await refused({ schedule, place: 's3://backups', credentials }, /is no file/)
  await writeFile(credentials, '')
  assert.deepEqual(await backupPlanOf(undefined, { schedule, place: 's3://backups', credentials }, 1), {
    schedule,
    place: 's3://backups',
    keep: 10,
    credentials,
    sinceMs: 1,
  })
})
