import assert from 'node:assert/strict'
import { test } from 'node:test'
import { missingProgram } from '../../support/testPackages.ts'

test('a program that is there is no obstacle', () => {
  for (const hasPackages of [true, false]) assert.equal(missingProgram('sh', 'dash', hasPackages), false)
})

test('a missing program is a reason to skip where packages cannot be installed, and an error where they are', () => {
  const reason = 'no-such-program is not installed (Debian: some-package)'
  assert.equal(missingProgram('no-such-program', 'some-package', false), reason)
  assert.throws(() => missingProgram('no-such-program', 'some-package', true), { message: `${reason}, although scripts/packages.sh --tests installs it` })
})
