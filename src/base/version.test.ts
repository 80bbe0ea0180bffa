import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { goPlatform, skiffVersion } from './version.ts'

test('API-32 the version in the code equals that of package.json', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.equal(skiffVersion, version)
})

const platforms = [
  ['x64', 'linux/amd64'],
  ['arm64', 'linux/arm64'],
  ['ia32', 'linux/386'],
] as const
for (const [architecture, want] of platforms) {
  test(`API-32 the platform of ${architecture} has Go's name`, () => {
    assert.equal(goPlatform('linux', architecture), want)
  })
}
