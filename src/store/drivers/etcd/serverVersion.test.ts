import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasSoundProgress } from './serverVersion.ts'

const versions: Readonly<Record<string, boolean>> = {
  '3.4.23': false,
  '3.4.31': true,
  '3.5.12': false,
  '3.5.13': true,
  '3.6.0-rc.1': true,
  '3.7.0': true,
  '4.0.0': true,
  '3.3.99': false,
  '': false,
}
for (const [version, isSound] of Object.entries(versions)) {
  test(`ETC-19 etcd ${version || 'of an unknown version'} ${isSound ? 'reports' : 'does not report'} progress after all earlier events`, () =>
    assert.equal(hasSoundProgress(version), isSound))
}
