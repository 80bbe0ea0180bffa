import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BackupRecord, backupName, dueTime, noBackups, surplusFiles, withBackupFile } from './backupPlan.ts'

const at = (text: string) => Date.parse(`2026-11-29T${text}Z`)
const plan = { schedule: '0 */6 * * *', place: '/backups', keep: 2, sinceMs: at('05:00:00') }
const failedAt = (text: string): BackupRecord => ({ ...noBackups, failure: { atMs: at(text), reason: 'the disk is full' } })

const dues: readonly { readonly name: string; readonly record: BackupRecord; readonly now: string; readonly due: string | undefined }[] = [
  { name: 'no time has passed since the plan was made', record: noBackups, now: '05:59:59', due: undefined },
  { name: 'a time has come', record: noBackups, now: '06:00:00', due: '06:00:00' },
  { name: 'several times were missed', record: noBackups, now: '19:30:00', due: '18:00:00' },
  { name: 'the newest time has its backup', record: { ...noBackups, doneMs: at('18:00:00') }, now: '19:30:00', due: undefined },
  { name: 'the backup is of a later time, by a clock that was wrong', record: { ...noBackups, doneMs: at('23:00:00') }, now: '06:10:00', due: '06:00:00' },
  { name: 'an attempt failed less than ten minutes ago', record: failedAt('06:00:10'), now: '06:10:09', due: undefined },
  { name: 'an attempt failed ten minutes ago', record: failedAt('06:00:10'), now: '06:10:10', due: '06:00:00' },
  { name: 'an attempt failed before the newest time', record: failedAt('11:59:00'), now: '12:00:00', due: '12:00:00' },
  { name: 'the failure is later than now, by a clock that was wrong', record: failedAt('23:00:00'), now: '06:10:00', due: '06:00:00' },
]
for (const { name, record, now, due } of dues) {
  test(`ETC-20 ${due === undefined ? 'no backup is due' : `the backup of ${due} is due`} when ${name}`, () =>
    assert.equal(dueTime(plan, record, at(now)), due === undefined ? undefined : at(due)))
}

test('ETC-20 a backup is named by the cluster and the time of the schedule, so that a second attempt has the same name', () =>
  assert.equal(backupName({ name: 'lab', id: '12ab' }, at('06:00:00')), 'lab-12ab-20261129T060000Z.db'))

test('ETC-20 the oldest backups of one place are surplus; those of a former place are left alone', () => {
  const fileOf = (name: string) => ({ name, bytes: 1, sha256: name, atMs: 0 })
  const record = ['a', 'b', 'c', 'c'].reduce((before, name) => withBackupFile(before, '/backups', fileOf(name), 1), noBackups)
  assert.deepEqual(
    surplusFiles(record, 2).map(({ name }) => name),
    ['a'],
  )
  assert.deepEqual(withBackupFile(record, '/other', fileOf('d'), 2), { place: '/other', doneMs: 2, files: [fileOf('d')] })
})
